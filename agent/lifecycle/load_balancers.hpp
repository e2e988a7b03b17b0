// Excludes a node from external load balancers before the first eviction, so that they stop sending traffic to it, and
// adds it again after the update. The exclusion does nothing if the option lb_drain_wait is 0. Cancellable.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

// What delays a drain before the first eviction.
struct HoldUp {
  std::string reason{}, message{};
};

// Excludes the node, with retries until it succeeds, and then waits for lb_drain_wait. Call it after the cordon. If the
// node is already excluded, the wait counts from the time in the cordon's mark, so that a wait before a restart of the
// agent counts. Calls `hold` with what delays the drain, and with nothing at the end.
boost::asio::awaitable<void> leave_load_balancers(const Context& context,
                                                  std::function<void(std::optional<HoldUp>)> hold);
// Removes the exclusion, with retries until it succeeds or until the Node has to be read again.
boost::asio::awaitable<void> return_to_load_balancers(const Context& context);

}  // namespace haulout::agent
