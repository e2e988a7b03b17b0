// A Clock in virtual time: code that sleeps takes no real time. The alarms that are set (sleepers) are in a queue,
// ordered by (time, order of arrival). run() polls the io_context until it is idle, then advances the clock to the next
// sleeper. The same inputs give the same order on every machine.
//
// Everything must run on this one io_context: while another thread or process works, the context would look idle and
// the clock would advance too early. Wall time advances with monotonic time from a fixed start; a test may shift it.
// Borrows the context. run() blocks and cannot be cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::sim {

class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(boost::asio::io_context& context);

  TimePoint now() const override { return now_; }
  WallTime wall_now() const override;
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override;

  // Shifts the wall clock, as NTP or a person may do. Monotonic time is not affected.
  void shift_wall(Duration delta) { wall_shift_ += delta; }

  enum class Stop {
    idle,      // nothing is left to run: no handler is ready, and no sleeper is due before TimePoint::max()
    deadline,  // the next sleeper is later than `until`; the clock shows `until`
    steps,     // `max_steps` steps were run; the code probably loops without end
  };
  // Runs until one of the conditions of Stop holds. Sleepers at TimePoint::max() are never woken by time.
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

// Runs the coroutine to its end, in virtual time. Blocks; must not be called from a coroutine. Rethrows the exceptions
// of the coroutine. Fails with Errc::invalid if the coroutine does not end, because it waits for an event that never
// happens or loops without end.
Result<> play(boost::asio::io_context& context, VirtualClock& clock, boost::asio::awaitable<void> coroutine);

}  // namespace haulout::sim
