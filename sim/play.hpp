// Runs a coroutine in virtual time, called from code that is not a coroutine. Blocks until the coroutine ends.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "retry/task.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::sim {

// Runs the coroutine to its end. Rethrows what it throws. Fails with Errc::invalid if the coroutine does not end: it
// waits for something that never happens, or continues without end.
Result<> play(boost::asio::io_context& context, VirtualClock& clock, boost::asio::awaitable<void> coroutine);

}  // namespace haulout::sim
