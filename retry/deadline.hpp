// Bounding a coroutine by a point in time.
//
// with_deadline(clock, deadline, task): the task's own result if it ends first (also when it ends in the same instant:
// a write may have taken effect), Errc::timeout otherwise; the task is then cancelled and joined before this returns.
// Cancelling the caller cancels the task and unwinds as usual. The task must honour terminal cancellation.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "retry/clock.hpp"
#include "retry/result.hpp"

namespace haulout {

// The failure that with_deadline reports; exposed so that hand-written waits report the same.
Error deadline_error();

template <class T>
Task<T> with_deadline(Clock& clock, TimePoint deadline, Task<T> task) {
  namespace asio = boost::asio;
  if (deadline == TimePoint::max()) co_return co_await std::move(task);
  auto executor = co_await asio::this_coro::executor;
  auto [order, task_failure, result, timer_failure, passed] =
      co_await asio::experimental::make_parallel_group(
          asio::co_spawn(executor, std::move(task), asio::deferred),
          asio::co_spawn(executor, clock.doze_until(deadline), asio::deferred))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!task_failure) co_return std::move(result);
  auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none || order[0] == 0) std::rethrow_exception(task_failure);
  co_return deadline_error();
}

}  // namespace haulout
