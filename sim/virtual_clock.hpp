// Clock in virtual time: nobody waits. Sleepers stand in an ordered queue (time, then order of arrival); run() polls
// the io_context until it is idle, then jumps to the next sleeper. Same inputs, same order, on every machine.
//
// Everything must live on this one io_context: another thread or process looks idle and time would run past it.
// Wall time moves with monotonic time from a fixed start and may be shifted by a test.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>

#include "retry/clock.hpp"

namespace haulout::sim {

class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(boost::asio::io_context& context);

  TimePoint now() const override { return now_; }
  WallTime wall_now() const override;
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override;

  // The wall clock jumps (NTP, a human); monotonic time does not notice.
  void shift_wall(Duration delta) { wall_shift_ += delta; }

  enum class Stop {
    idle,      // nothing is left to run and nobody sleeps
    deadline,  // the next sleeper is beyond `until`; time stands at `until`
    steps,     // too many jumps: a livelock
  };
  // Runs until one of those. Sleepers at TimePoint::max() never wake by time.
  Stop run(TimePoint until = TimePoint::max(), std::uint64_t max_steps = 50'000'000);
  std::size_t sleepers() const { return sleepers_.size(); }

 private:
  class VirtualAlarm;
  boost::asio::io_context& context_;
  TimePoint now_;
  Duration wall_shift_{};
  std::uint64_t next_sequence_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, VirtualAlarm*> sleepers_;
};

}  // namespace haulout::sim
