// The states after the boot: verifying, soaking and degraded. All coroutines are cancellable. If the Node has to be
// read again they return a decision that does not count.
#pragma once

#include "agent/lifecycle/gate_watch.hpp"
#include "agent/lifecycle/hooks.hpp"

namespace haulout::agent {

// The state `verifying`: until the node is Ready and runs the expected version, and the hooks have passed; or until the
// deadline in the record.
boost::asio::awaitable<Decision> verify(const Context& context, RebootNeed& need, Hooks& hooks);
// The state `soaking`: until the soak time is over and the node is Ready, and the hooks have passed.
boost::asio::awaitable<Decision> soak(const Context& context, Hooks& hooks);
// The state `degraded`: until the cause is resolved, or a person requests another attempt.
boost::asio::awaitable<Decision> stay_degraded(const Context& context, RebootNeed& need, GateWatch& gates,
                                               Hooks& hooks);

}  // namespace haulout::agent
