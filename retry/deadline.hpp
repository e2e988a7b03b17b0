// Runs a coroutine with a deadline.
//
// with_deadline(clock, deadline, task) returns the result of the task, even if the task ends at the same moment as the
// deadline passes, because a write may have taken effect. Otherwise it cancels the task at the deadline, waits until it
// has ended, and fails with Errc::timeout. Cancellable: then it cancels the task, too. The task must be cancellable.
// Borrows the clock; owns the task.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "base/scope_exit.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout {

// The Error that with_deadline() returns when the deadline has passed. Other code that waits returns it, too.
Error deadline_error();

template <class T>
Task<T> with_deadline(Clock& clock, TimePoint deadline, Task<T> task) {
  namespace asio = boost::asio;
  if (deadline == TimePoint::max()) co_return co_await std::move(task);
  const auto executor = co_await asio::this_coro::executor;
  const auto caller = co_await asio::this_coro::cancellation_state;
  // Two events cancel the task: the deadline, and the cancellation of the caller. The caller's cancellation slot has no
  // other handler while this coroutine waits for the task.
  const auto stop = std::make_shared<asio::cancellation_signal>();
  // Asio 1.26 posts a handler that has a raw pointer into the signal, so the signal has to exist until that handler has
  // run (chriskohlhoff/asio issues 1332 and 1400).
  const auto stop_task = [stop, executor](asio::cancellation_type type) {
    stop->emit(type);
    asio::post(executor, [stop] {});
  };
  bool passed = false;
  const auto alarm = clock.set_alarm(executor, deadline, [&passed, stop_task] {
    passed = true;
    stop_task(asio::cancellation_type::terminal);
  });
  auto slot = caller.slot();
  if (slot.is_connected()) slot.assign(stop_task);
  // A cancellation of the caller after this function has returned must not be sent to the task.
  const ScopeExit clear_slot([&slot] {
    if (slot.is_connected()) slot.clear();
  });
  auto [failure, result] = co_await asio::co_spawn(
      executor, std::move(task), asio::bind_cancellation_slot(stop->slot(), asio::as_tuple(asio::use_awaitable)));
  if (!failure) co_return std::move(result);
  if (caller.cancelled() != asio::cancellation_type::none || !passed) std::rethrow_exception(failure);
  co_return deadline_error();
}

}  // namespace haulout
