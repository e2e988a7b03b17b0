// Helpers for the feeds of a drain. A feed keeps the drain's view of one kind of object up to date: the Node, the pods,
// the budgets, the controllers or the volumes. It lists and watches the objects, passes each change on, and lists them
// again if an expected change does not arrive for long. The helpers send nothing and never fail.
//
// The feeds have functions of the same names, which each feed has as far as it needs them. look(group) starts the
// requests that are due as children of the task group, and returns at once. next_wake() returns the next time at which
// the main loop must call look() even without an event; max() if there is none. diagnose() appends the facts to report.
// close() ends the watch; call it when the task group has ended.
#pragma once

#include "retry/clock.hpp"
#include "retry/task_group.hpp"

namespace haulout::drain {

// How often the drain lists objects again that have not changed for long, such as a pod that should be deleted. A watch
// can lose events without an error: after etcd was restored from a backup, the revisions start again.
inline constexpr Duration doubt_interval = std::chrono::minutes(5);

// A timer for a condition. While the condition holds, due() returns true once each `doubt_interval`, for the first time
// after one such interval.
class HeldLong {
 public:
  bool due(bool held, TimePoint now) {
    const bool held_before = next_ != TimePoint::max();
    if (held && held_before && now < next_) return false;
    next_ = held ? now + doubt_interval : TimePoint::max();
    return held && held_before;
  }
  TimePoint next() const { return next_; }

 private:
  TimePoint next_ = TimePoint::max();  // max(): the condition does not hold
};

// A child of a task group that runs at most once at a time. Must outlive the group, which cancels the child.
class SingleTask {
 public:
  bool runs() const { return runs_; }
  // Starts the task. It must not be running.
  void start(TaskGroup& group, boost::asio::awaitable<void> task) {
    runs_ = true;
    group.spawn(run(std::move(task)));
  }

 private:
  boost::asio::awaitable<void> run(boost::asio::awaitable<void> task) {
    co_await std::move(task);
    runs_ = false;
  }

  bool runs_ = false;
};

// Returns the time until which a view may leave watch events unread if they can wait for `patience`. It is a multiple
// of `patience`, so that all views process their events at the same moment.
inline TimePoint gathered_at(TimePoint now, Duration patience) {
  return patience > Duration::zero() ? now - now.time_since_epoch() % patience + patience : now;
}

}  // namespace haulout::drain
