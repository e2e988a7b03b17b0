// Structured concurrency: children that cannot outlive their scope.
//
// with_task_group(body) runs body(group); the body may spawn children at any time. When the body ends, however it ends,
// the children still alive are cancelled and joined before with_task_group returns. A child that throws cancels its
// siblings and the body; the first such exception is rethrown to the caller. Cancelling the caller cancels everything.
// A child that was cancelled may end with operation_aborted. From any other child that is a failure like the others.
// group.join() lets the body wait until no child is left.
//
// A child takes what it needs by value or from an owner that outlives the group. One thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>

namespace haulout {

class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  // Children still alive here are a bug: terminates.
  ~TaskGroup();

  using ChildId = std::uint64_t;
  ChildId spawn(boost::asio::awaitable<void> child);
  // Asks every child to stop; returns at once.
  void cancel();
  // Asks one child to stop; an id that has already ended is ignored.
  void cancel(ChildId id);
  std::size_t size() const { return children_.size() - children_.count(body_); }
  // For the body: waits until no other child is left, then rethrows the first failure of a child, if any.
  boost::asio::awaitable<void> join();

 private:
  friend boost::asio::awaitable<void> with_task_group(std::function<boost::asio::awaitable<void>(TaskGroup&)> body);

  struct Child {
    std::shared_ptr<boost::asio::cancellation_signal> signal;
    bool cancelled = false;
  };
  void stop(Child& child);
  // Every child but the body.
  void cancel_children();
  void ended(ChildId id, std::exception_ptr failure);

  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer gate_;
  std::map<ChildId, Child> children_;
  std::exception_ptr failure_;
  ChildId next_id_ = 1;
  ChildId body_ = 0;  // the child that runs with_task_group's body
  bool cancelled_ = false;
};

boost::asio::awaitable<void> with_task_group(std::function<boost::asio::awaitable<void>(TaskGroup&)> body);

}  // namespace haulout
