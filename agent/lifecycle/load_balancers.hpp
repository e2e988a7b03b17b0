// The agent excludes a node from external load balancers before the first eviction, so that they stop sending traffic
// to it, and gives it back after the update. Does nothing if the option lb_drain_wait is 0. Cancellable.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

// What holds a drain up before the first eviction.
struct HoldUp {
  std::string reason{}, message{};
};

// Excludes the node, with retries until it succeeds, and waits until load balancers have had their time. Call it after
// the cordon. If the node is already excluded, the wait began at the time in the cordon's mark: a wait before a restart
// of the agent counts. `hold` is called with what holds the drain up, and with nothing at the end.
boost::asio::awaitable<void> leave_load_balancers(const Context& context,
                                                  std::function<void(std::optional<HoldUp>)> hold);
// Gives the node back, with retries until it succeeds or until the Node has to be read again.
boost::asio::awaitable<void> return_to_load_balancers(const Context& context);

}  // namespace haulout::agent
