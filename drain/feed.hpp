// What the feeds of a drain have in common. A feed keeps one kind of object up to date: the Node, the pods, the
// budgets, the controllers, the volumes. It lists and watches them, passes on what has changed, and lists them again if
// nothing has changed for suspiciously long.
#pragma once

#include "retry/clock.hpp"
#include "retry/task_group.hpp"

namespace haulout::drain {

// How often the drain lists again what has not changed for long, such as a pod that should be deleted. A watch can lose
// events without an error: after a restore of etcd from a backup the revisions start again.
inline constexpr Duration doubt_interval = std::chrono::minutes(5);

// Timer for a condition: due each `doubt_interval` while it holds, first after one such interval.
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

// A child of a task group that runs at most once at a time. Must outlive the group.
class SingleTask {
 public:
  bool runs() const { return runs_; }
  // Must not run already.
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

// Time until which a view may leave watch events unread if they can wait for `patience`. Rounded up to a multiple of
// it, so that all views read at the same moment.
inline TimePoint gathered_at(TimePoint now, Duration patience) {
  return patience > Duration::zero() ? now - now.time_since_epoch() % patience + patience : now;
}

}  // namespace haulout::drain
