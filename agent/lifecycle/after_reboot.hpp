// The states after the boot: verifying, soaking and degraded. Each coroutine runs one state and returns the decision
// that ends it. If the Node has to be read again, the decision does not count. Cancellable.
#pragma once

#include "agent/lifecycle/gate_watch.hpp"
#include "agent/lifecycle/hooks.hpp"

namespace haulout::agent {

// Runs the state `verifying`. It ends when the node is Ready, runs the expected version and has passed its hooks, or at
// the deadline in the record.
boost::asio::awaitable<Decision> verify(const Context& context, RebootNeed& need, Hooks& hooks);
// Runs the state `soaking`. It ends when the soak time is over, the node is Ready and the hooks have passed.
boost::asio::awaitable<Decision> soak(const Context& context, Hooks& hooks);
// Runs the state `degraded`. It ends when the cause is resolved, or when a person requests another attempt.
boost::asio::awaitable<Decision> stay_degraded(const Context& context, RebootNeed& need, GateWatch& gates,
                                               Hooks& hooks);

}  // namespace haulout::agent
