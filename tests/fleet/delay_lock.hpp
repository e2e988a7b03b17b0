// logind's delay lock for a machine of the fleet. A shutdown is announced and then waits while the agent holds the
// lock, but no longer than `longest`. An agent that has just started does not know logind's state before answer(). No
// I/O. changed() can be cancelled. Borrows the clock.
#pragma once

#include "agent/ports/host.hpp"
#include "retry/notifier.hpp"

namespace haulout::fleet {

class DelayLock final : public agent::ShutdownDelay {
 public:
  DelayLock(boost::asio::any_io_executor executor, Clock& clock) : clock_(clock), news_(std::move(executor)) {}

  void hold(std::string) override {
    wanted_ = true;
    take();
  }
  void release() override {
    wanted_ = false;
    let_shutdown_proceed();
  }
  void let_shutdown_proceed() override {
    if (std::exchange(held_, false)) let_go();
    news_.notify();
  }
  bool held() const override { return held_; }
  const std::string& problem() const override { return problem_; }
  bool known() const override { return known_; }
  std::optional<TimePoint> shutdown_at() const override {
    if (!preparing_since_ || !known_) return std::nullopt;
    return held_ ? *preparing_since_ + longest : *preparing_since_;
  }
  boost::asio::awaitable<void> changed() override { co_await news_.wait_until(clock_, TimePoint::max()); }

  void announce(bool preparing) {
    preparing_since_ = preparing ? std::optional(clock_.now()) : std::nullopt;
    take();
  }
  // The process that held the lock has ended.
  void forget() {
    wanted_ = known_ = false;
    let_shutdown_proceed();
  }
  // logind answers the agent's first query. From now on the agent knows whether a shutdown is in progress, and takes
  // the lock if it wants it.
  void answer() {
    known_ = true;
    take();
  }
  // From now on logind refuses the lock for this reason. Empty means that logind grants the lock.
  void deny(std::string why) { problem_ = std::move(why); }
  bool preparing() const { return preparing_since_.has_value(); }
  Duration longest{};                    // logind's InhibitDelayMaxUSec
  std::function<void()> let_go = [] {};  // called when the lock is released

 private:
  // logind grants no lock while a shutdown is in progress.
  void take() {
    if (wanted_ && known_ && !preparing_since_ && problem_.empty()) held_ = true;
    news_.notify();
  }

  Clock& clock_;
  Notifier news_;
  bool wanted_ = false, held_ = false, known_ = false;
  std::string problem_{};
  std::optional<TimePoint> preparing_since_{};
};

}  // namespace haulout::fleet
