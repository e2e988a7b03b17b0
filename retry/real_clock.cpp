#include "retry/real_clock.hpp"

#include <boost/asio/steady_timer.hpp>

namespace haulout {
namespace asio = boost::asio;
namespace {

class RealAlarm final : public Alarm {
 public:
  RealAlarm(const asio::any_io_executor& executor, TimePoint when, std::function<void()> ring)
      : timer_(executor, when), ring_(std::make_shared<std::function<void()>>(std::move(ring))) {
    // A timer that has expired cannot be cancelled any more. The weak pointer shows its handler whether the alarm was
    // destroyed meanwhile.
    timer_.async_wait([weak = std::weak_ptr(ring_)](const boost::system::error_code& cancelled) {
      const auto alive = weak.lock();
      if (!cancelled && alive) (*alive)();
    });
  }

 private:
  asio::steady_timer timer_;
  std::shared_ptr<std::function<void()>> ring_;
};

}  // namespace

TimePoint RealClock::now() const {
  return std::chrono::steady_clock::now();
}

WallTime RealClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

std::unique_ptr<Alarm> RealClock::set_alarm(asio::any_io_executor executor, TimePoint when,
                                            std::function<void()> ring) {
  return std::make_unique<RealAlarm>(executor, when, std::move(ring));
}

}  // namespace haulout
