// Gives up an update in any state and removes its traces: `haulout agent --release`.
//
// For a node whose agent does not run; a running agent would write its labels and annotations again. release() finds
// out from the Node what has to be removed. It works in any state, even if the record cannot be decoded. After a
// success, a second call changes nothing.
//
// The steps, in this order:
//   1. Remove the ready file.
//   2. Uncordon the node, if an agent set the cordon.
//   3. Add the node to load balancers again.
//   4. Remove the conditions of an agent.
//   5. Release the slot, but only if no cordon of an agent is left.
//   6. Remove labels and annotations, but only if all earlier steps have succeeded.
//   7. Remove the annotations for autoscalers, also if step 6 has failed, unless a cordon of an agent is left. Last,
//      because an admission policy may refuse them, and nothing else must wait for that.
//   8. Remove the taint of --waiting-taint. The credential may not have the right to do that.
// So a repeated call completes what is left. The annotations of people (pause, request, hooks) stay.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/ports/host.hpp"
#include "agent/ports/slots.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// All members are borrowed.
struct ReleaseParts {
  k8s::Client& client;
  Rng& rng;
  Host& host;
  Slots& slots;
};

// What release() did.
struct Released {
  std::vector<std::string> done;      // one sentence for each change, and for each thing that stays on purpose
  std::vector<std::string> failures;  // one sentence for each step that failed
};

// Never fails: `failures` lists the steps that failed. Retries transient errors until the deadline. Cancellable.
boost::asio::awaitable<Released> release(ReleaseParts parts, std::string node, TimePoint deadline);

}  // namespace haulout::agent
