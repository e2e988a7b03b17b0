// Runs a coroutine in virtual time from a place that is none. Blocks until it has ended.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "retry/task.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::sim {

// What the coroutine throws is thrown. Errc::invalid when it did not end: it waits for what never comes, or moves
// without end.
Result<> play(boost::asio::io_context& context, VirtualClock& clock, boost::asio::awaitable<void> coroutine);

}  // namespace haulout::sim
