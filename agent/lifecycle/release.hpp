// Gives an update up, whatever it has come to, and leaves no trace: `haulout agent --release`.
//
// For a node whose agent does not run: one that does would write its marks anew. Works from what the Node says, in any
// state, also where the record cannot be read; done twice, the second time does nothing. In this order: the ready file
// goes; the cordon is taken back, if it is the agent's; load balancers get the node back; the condition goes; then the
// turn is freed, only if the cordon is gone; last the labels and annotations, only if all of that has succeeded, so
// that another attempt finds what is left to do. What people write (pause, request, hooks) stays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/ports/host.hpp"
#include "agent/ports/slots.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Borrowed.
struct ReleaseParts {
  k8s::Client& client;
  Rng& rng;
  Host& host;
  Slots& slots;
};

struct Released {
  std::vector<std::string> done;      // a sentence for each thing that was changed, or is left as it is on purpose
  std::vector<std::string> failures;  // a sentence for each that could not be
};

// What is away for a moment is tried again until the deadline. Cancellable.
boost::asio::awaitable<Released> release(ReleaseParts parts, std::string node, TimePoint deadline);

}  // namespace haulout::agent
