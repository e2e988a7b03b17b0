// A clock whose wall clock a test can shift. Its monotonic time is that of the clock below, which it borrows.
#pragma once

#include "retry/clock.hpp"

namespace haulout::scenario {

class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(Clock& below) : below_(below) {}

  TimePoint now() const override { return below_.now(); }
  WallTime wall_now() const override {
    return below_.wall_now() + std::chrono::duration_cast<WallTime::duration>(shift_);
  }
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override {
    return below_.set_alarm(std::move(executor), when, std::move(ring));
  }

  void shift_wall(Duration delta) { shift_ += delta; }

 private:
  Clock& below_;
  Duration shift_{};
};

}  // namespace haulout::scenario
