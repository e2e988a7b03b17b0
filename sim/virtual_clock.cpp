#include "sim/virtual_clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace haulout::sim {
namespace asio = boost::asio;

namespace {
// Any instant will do, as long as it is the same in each run: 2026-01-01T00:00:00Z.
constexpr std::chrono::sys_days wall_start = std::chrono::year(2026) / 1 / 1;
constexpr TimePoint monotonic_start = TimePoint(std::chrono::hours(1));
}  // namespace

VirtualClock::VirtualClock(asio::io_context& context) : context_(context), now_(monotonic_start) {}

WallTime VirtualClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(wall_start + (now_ - monotonic_start) + wall_shift_);
}

asio::awaitable<bool> VirtualClock::doze_until(TimePoint when) {
  asio::steady_timer gate(context_, TimePoint::max());
  bool fired = false;
  const auto entry = sleepers_.emplace(std::pair(when, next_sequence_++), Sleeper{&gate, &fired}).first;
  // Taken out again however this ends; run() has already done so for those that it woke.
  struct Eraser {
    decltype(sleepers_)& sleepers;
    decltype(sleepers_)::iterator entry;
    bool& fired;
    ~Eraser() {
      if (!fired) sleepers.erase(entry);
    }
  } eraser{sleepers_, entry, fired};
  co_await gate.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return fired;
}

VirtualClock::Stop VirtualClock::run(TimePoint until, std::uint64_t max_steps) {
  for (std::uint64_t step = 0; step < max_steps; ++step) {
    context_.restart();
    while (context_.poll() > 0) {
    }
    if (sleepers_.empty() || sleepers_.begin()->first.first == TimePoint::max()) return Stop::idle;
    if (sleepers_.begin()->first.first > until) {
      now_ = std::max(now_, until);
      return Stop::deadline;
    }
    auto entry = sleepers_.extract(sleepers_.begin());
    now_ = std::max(now_, entry.key().first);
    *entry.mapped().fired = true;
    entry.mapped().gate->cancel();
  }
  return Stop::steps;
}

}  // namespace haulout::sim
