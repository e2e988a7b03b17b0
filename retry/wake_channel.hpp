// A channel at which coroutines wait until somebody wakes them. Notifier, TaskGroup and Clock are made with it. Other
// code uses it only if several coroutines wait for one event, because a Notifier wakes only one.
//
// `co_await wake.async_receive(asio::as_tuple(asio::use_awaitable))` waits, and wake.cancel() wakes all that wait at
// that moment; it is not remembered for later. The wait ends, without an exception, when the waiting coroutine is
// cancelled, too. The channel must outlive the coroutines that wait at it. One thread.
//
// A timer that never expires would do the same. But as soon as an io_context has had one timer, it asks the kernel for
// events after each handler that it runs. In virtual time, that is a system call for each step of a simulation.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/system/error_code.hpp>

namespace haulout {

using WakeChannel = boost::asio::experimental::channel<boost::asio::any_io_executor, void(boost::system::error_code)>;

}  // namespace haulout
