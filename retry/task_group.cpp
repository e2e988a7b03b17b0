#include "retry/task_group.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/scope_exit.hpp"

namespace haulout {
namespace asio = boost::asio;

namespace {

using Signal = std::shared_ptr<asio::cancellation_signal>;

// Emits the signal from the executor, and keeps it alive until the handler that co_spawn then posts has run: in Asio
// 1.26 that handler has a raw pointer into the signal (chriskohlhoff/asio issues 1332 and 1400).
void emit_later(const asio::any_io_executor& executor, Signal signal) {
  asio::post(executor, [executor, signal] {
    signal->emit(asio::cancellation_type::terminal);
    asio::post(executor, [signal] {});
  });
}

}  // namespace

TaskGroup::TaskGroup(asio::any_io_executor executor) : executor_(executor), wake_(executor) {}

TaskGroup::~TaskGroup() {
  if (children_.empty()) return;
  std::fputs("bug: a TaskGroup was destroyed before its children had ended\n", stderr);
  std::abort();
}

TaskGroup::ChildId TaskGroup::spawn(asio::awaitable<void> child) {
  const ChildId id = next_id_++;
  // A child that is spawned after the group was cancelled is cancelled below. `cancelled_` is read before the child
  // runs: if the child itself cancels the group, cancel() has cancelled the child already.
  const bool late = cancelled_;
  auto signal = std::make_shared<asio::cancellation_signal>();
  children_.emplace(id, Child{signal});
  asio::co_spawn(executor_, run(id, std::move(child)),
                 asio::bind_cancellation_slot(signal->slot(), [this, id, signal](std::exception_ptr failure) {
                   ended(id, failure);
                   asio::post(executor_, [signal] {});
                 }));
  if (late) cancel(id);
  return id;
}

// An exception is caught and thrown again at each level that it passes, which takes as long as a small request. Nearly
// all children of an agent end by cancellation, so it ends here.
asio::awaitable<void> TaskGroup::run(ChildId id, asio::awaitable<void> child) {
  try {
    co_await std::move(child);
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted || !children_.at(id).cancelled) throw;
  }
}

void TaskGroup::stop(Child& child) {
  child.cancelled = true;
  emit_later(executor_, child.signal);
}

void TaskGroup::cancel() {
  cancel_children();
  if (const auto body = children_.find(body_); body != children_.end()) stop(body->second);
}

void TaskGroup::cancel_children() {
  cancelled_ = true;
  for (auto& [id, child] : children_)
    if (id != body_) stop(child);
}

void TaskGroup::cancel(ChildId id) {
  const auto found = children_.find(id);
  if (found != children_.end()) stop(found->second);
}

void TaskGroup::ended(ChildId id, std::exception_ptr failure) {
  children_.erase(id);
  if (failure && !failure_) {
    failure_ = failure;
    cancel();
  }
  wake_.cancel();  // wakes join() and with_task_group(), which check again whether a child still runs
}

asio::awaitable<void> TaskGroup::join() {
  while (children_.size() > children_.count(body_)) co_await wake_.async_receive(asio::as_tuple(asio::use_awaitable));
  if (failure_) std::rethrow_exception(failure_);
}

asio::awaitable<void> with_task_group(std::function<asio::awaitable<void>(TaskGroup&)> body) {
  TaskGroup group(co_await asio::this_coro::executor);
  // The body runs as a child, too, so that the failure of any other child cancels it.
  const auto run_body = [](std::function<asio::awaitable<void>(TaskGroup&)>& run,
                           TaskGroup& scope) -> asio::awaitable<void> {
    const ScopeExit stop_children([&scope] { scope.cancel_children(); });
    co_await run(scope);
  };
  group.body_ = group.next_id_;  // set before the spawn, which may run the body at once
  group.spawn(run_body(body, group));

  // throw_if_cancelled(false), because the wait for the children must go on when the caller is cancelled.
  co_await asio::this_coro::throw_if_cancelled(false);
  bool asked = false;
  while (!group.children_.empty()) {
    co_await group.wake_.async_receive(asio::as_tuple(asio::use_awaitable));
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none && !asked) {
      asked = true;
      group.cancel();
      // A second cancellation must not interrupt the wait for the children.
      co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    }
  }
  if (asked) {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
    co_await asio::this_coro::throw_if_cancelled(true);
    throw boost::system::system_error(asio::error::operation_aborted);
  }
  co_await asio::this_coro::throw_if_cancelled(true);
  if (group.failure_) std::rethrow_exception(group.failure_);
}

}  // namespace haulout
