// Bounding a coroutine by a point in time.
//
// with_deadline(clock, deadline, task): the task's own result if it ends first (also when it ends in the same instant:
// a write may have taken effect), Errc::timeout otherwise; the task is then cancelled and joined before this returns.
// Cancelling the caller cancels the task and unwinds as usual. The task must honour terminal cancellation.
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

// The failure that with_deadline reports; exposed so that hand-written waits report the same.
Error deadline_error();

template <class T>
Task<T> with_deadline(Clock& clock, TimePoint deadline, Task<T> task) {
  namespace asio = boost::asio;
  if (deadline == TimePoint::max()) co_return co_await std::move(task);
  const auto executor = co_await asio::this_coro::executor;
  const auto caller = co_await asio::this_coro::cancellation_state;
  // The task hears of two: of the deadline, and of whoever cancels us. Our own slot is free while we wait for it.
  const auto stop = std::make_shared<asio::cancellation_signal>();
  // Asio 1.26 posts the rest of the work with a raw pointer into the signal: it has to live until that has run
  // (chriskohlhoff/asio issues 1332 and 1400).
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
  // The caller's slot must not reach the task after this function has returned.
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
