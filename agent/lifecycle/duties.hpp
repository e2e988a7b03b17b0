// Establishes the duties of a state (see agent/node/state.hpp): cordon, slot, load balancers, condition, ready file.
#pragma once

#include "agent/lifecycle/own_slot.hpp"
#include "agent/lifecycle/shutdown.hpp"

namespace haulout::agent {

// The agent calls this when it enters the state of the record, also after a restart. A cordon that is in force stays
// until the boot was verified, and while another program shuts the machine down. Retries each step until it succeeds or
// until the Node has to be read again. Cancellable.
boost::asio::awaitable<void> establish_duties(const Context& context, OwnSlot& slot, Shutdowns& shutdowns);

}  // namespace haulout::agent
