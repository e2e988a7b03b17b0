// Gives up an update in any state and removes its traces: `haulout agent --release`.
//
// For a node whose agent does not run; a running agent would write its marks again. The function uses only what the
// Node shows. It works in any state, even if the record cannot be read, and a second call does nothing.
//
// The steps, in this order:
//   1. Remove the ready file.
//   2. Take the cordon back, if an agent set it.
//   3. Put the node back into load balancers.
//   4. Remove the condition.
//   5. Release the slot, but only if no cordon of an agent is left.
//   6. Remove labels and annotations, but only if everything before has succeeded.
// So a repeated call finds what is left to do. What people write (pause, request, hooks) stays.
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

struct Released {
  std::vector<std::string> done;      // a sentence for each change, and for each thing that stays as it is on purpose
  std::vector<std::string> failures;  // a sentence for each step that failed
};

// Never fails: `failures` says what did not succeed. Retries transient errors until the deadline. Cancellable.
boost::asio::awaitable<Released> release(ReleaseParts parts, std::string node, TimePoint deadline);

}  // namespace haulout::agent
