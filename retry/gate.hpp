// Where a coroutine waits until somebody wakes it. The users of this header are the other files of retry/ and the few
// places where several coroutines wait for one event; everything else waits with a Notifier or a TaskGroup.
//
// `co_await gate.async_receive(asio::as_tuple(asio::use_awaitable))` waits, and gate.cancel() wakes all that wait at
// that moment; it is not remembered for later. The wait ends, without an exception, when the waiting coroutine is
// cancelled, too. A gate must outlive the coroutines that wait at it. One thread.
//
// A timer that never expires would do the same. But as soon as an io_context has one timer, it asks the kernel for
// events after each handler that it runs. In virtual time, that is a system call for each step of a simulation.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/system/error_code.hpp>

namespace haulout {

using Gate = boost::asio::experimental::channel<boost::asio::any_io_executor, void(boost::system::error_code)>;

}  // namespace haulout
