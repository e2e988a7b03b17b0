// A group of coroutines (children) that all end before the scope of the group ends.
//
// with_task_group(body) runs body(group). The body may spawn children at any time. When the body has ended, by a return
// or by an exception, with_task_group() cancels the children that still run, and returns when they have ended. A child
// that throws cancels the body and all other children, and with_task_group() rethrows the first such exception. This
// does not apply to operation_aborted from a child that was cancelled. Cancellable: with_task_group() then cancels the
// body and all children, and waits for them. The body can wait for all children with group.join().
//
// Parameters of a child are passed by value, or belong to an owner that outlives the group. One thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>

#include "retry/wake_channel.hpp"

namespace haulout {

class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  // Terminates the program if a child still runs, which is a bug.
  ~TaskGroup();

  using ChildId = std::uint64_t;
  // Starts a child. If the group was cancelled before, the child is cancelled, too.
  ChildId spawn(boost::asio::awaitable<void> child);
  // Requests the cancellation of the body and of all children; returns at once.
  void cancel();
  // Requests the cancellation of one child. Does nothing if that child has ended.
  void cancel(ChildId id);
  // Returns the number of children that run, without the body.
  std::size_t size() const { return children_.size() - children_.count(body_); }
  // Only for the body: waits until all other children have ended. Rethrows the first failure of a child, if any.
  // Cancellable.
  boost::asio::awaitable<void> join();

 private:
  friend boost::asio::awaitable<void> with_task_group(std::function<boost::asio::awaitable<void>(TaskGroup&)> body);

  struct Child {
    std::shared_ptr<boost::asio::cancellation_signal> signal;
    bool cancelled = false;
  };
  void stop(Child& child);
  // Cancels all children except the body.
  void cancel_children();
  // Runs a child. Ends without an exception if the group has cancelled the child, and it ended because of that.
  boost::asio::awaitable<void> run(ChildId id, boost::asio::awaitable<void> child);
  void ended(ChildId id, std::exception_ptr failure);

  boost::asio::any_io_executor executor_;
  WakeChannel wake_;
  std::map<ChildId, Child> children_;
  std::exception_ptr failure_;
  ChildId next_id_ = 1;
  ChildId body_ = 0;  // the child that runs with_task_group's body
  bool cancelled_ = false;
};

boost::asio::awaitable<void> with_task_group(std::function<boost::asio::awaitable<void>(TaskGroup&)> body);

}  // namespace haulout
