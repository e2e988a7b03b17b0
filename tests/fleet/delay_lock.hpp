// What logind does for a machine of the fleet: a shutdown that is announced, and waits for a lock that is held, but not
// for ever. An agent that has just started does not know yet what logind is at.
#pragma once

#include "agent/ports/shutdown_delay.hpp"
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
  // The process that held it is no more.
  void forget() {
    wanted_ = known_ = false;
    let_shutdown_proceed();
  }
  // logind has answered the process.
  void answer() {
    known_ = true;
    take();
  }
  // Why logind gives no lock; empty: it gives one.
  void deny(std::string why) { problem_ = std::move(why); }
  bool preparing() const { return preparing_since_.has_value(); }
  Duration longest{};                    // InhibitDelayMaxUSec
  std::function<void()> let_go = [] {};  // the lock was given back

 private:
  // logind gives no lock while a shutdown is under way.
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
