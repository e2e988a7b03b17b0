// A clock that counts how many of its alarms ring: each one wakes the processor of an idle process. Its time of day can
// be wrong by a fixed amount. No I/O. Borrows the clock that it wraps.
#pragma once

#include "retry/clock.hpp"

namespace haulout::fleet {

class CountingClock final : public Clock {
 public:
  explicit CountingClock(Clock& clock) : clock_(clock) {}

  TimePoint now() const override { return clock_.now(); }
  WallTime wall_now() const override { return clock_.wall_now() + wrong_by_; }
  // Affects only the clocks of the machines, not the server's clock.
  void set_wrong_by(WallTime::duration offset) { wrong_by_ = offset; }
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override {
    return clock_.set_alarm(std::move(executor), when, [this, ring = std::move(ring)] {
      ++rung_;
      ring();
    });
  }
  std::size_t rung() const { return rung_; }

 private:
  Clock& clock_;
  WallTime::duration wrong_by_{};
  std::size_t rung_ = 0;
};

}  // namespace haulout::fleet
