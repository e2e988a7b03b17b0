#include "sim/virtual_clock.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>

namespace haulout::sim {

namespace asio = boost::asio;

namespace {
// The start of wall time, 2026-01-01T00:00:00Z. Any time works if it is the same in each run.
constexpr std::chrono::sys_days wall_start = std::chrono::year(2026) / 1 / 1;
constexpr TimePoint monotonic_start = TimePoint(std::chrono::hours(1));
}  // namespace

VirtualClock::VirtualClock(asio::io_context& context) : context_(context), now_(monotonic_start) {}

WallTime VirtualClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(wall_start + (now_ - monotonic_start) + wall_shift_);
}

class VirtualClock::VirtualAlarm final : public Alarm {
 public:
  VirtualAlarm(VirtualClock& clock, asio::any_io_executor executor, TimePoint when, std::function<void()> ring)
      : clock_(clock),
        executor_(std::move(executor)),
        ring_(std::make_shared<std::function<void()>>(std::move(ring))),
        key_(when, clock.next_sequence_++) {
    clock_.sleepers_.emplace(key_, this);
  }
  ~VirtualAlarm() override { clock_.sleepers_.erase(key_); }

  void fire() {
    clock_.sleepers_.erase(key_);
    asio::post(executor_, [weak = std::weak_ptr(ring_)] {
      if (const auto alive = weak.lock()) (*alive)();
    });
  }

 private:
  VirtualClock& clock_;
  asio::any_io_executor executor_;
  std::shared_ptr<std::function<void()>> ring_;
  std::pair<TimePoint, std::uint64_t> key_;
};

std::unique_ptr<Alarm> VirtualClock::set_alarm(asio::any_io_executor executor, TimePoint when,
                                               std::function<void()> ring) {
  return std::make_unique<VirtualAlarm>(*this, std::move(executor), when, std::move(ring));
}

VirtualClock::Stop VirtualClock::run(TimePoint until, std::uint64_t max_steps) {
  for (std::uint64_t step = 0; step < max_steps; ++step) {
    context_.restart();
    context_.poll();  // also runs what the handlers post
    if (sleepers_.empty() || sleepers_.begin()->first.first == TimePoint::max()) return Stop::idle;
    if (sleepers_.begin()->first.first > until) {
      now_ = std::max(now_, until);
      return Stop::deadline;
    }
    const auto [when, alarm] = *sleepers_.begin();
    now_ = std::max(now_, when.first);
    alarm->fire();
  }
  return Stop::steps;
}

Result<> play(boost::asio::io_context& context, VirtualClock& clock, boost::asio::awaitable<void> coroutine) {
  std::exception_ptr failure;
  bool ended = false;
  boost::asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr thrown) {
    ended = true;
    failure = thrown;
  });
  const auto stop = clock.run();
  if (failure) std::rethrow_exception(failure);
  if (ended) return {};
  return Error(Errc::invalid, stop == VirtualClock::Stop::idle ? "it waits for something that never comes"
                                                               : "it moves on without end");
}

}  // namespace haulout::sim
