#include "agent/report/service_manager.hpp"

#include <systemd/sd-daemon.h>

#include <cstdint>

namespace haulout::agent {

void notify_service_manager(const std::string& words) {
  static_cast<void>(sd_notify(0, words.c_str()));
}

std::optional<Duration> watchdog_limit() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

boost::asio::awaitable<void> feed_watchdog(Clock& clock, Duration limit,
                                           std::function<void(const std::string&)> notify) {
  for (;;) {
    notify("WATCHDOG=1");
    co_await clock.sleep_until(clock.now() + limit / 2);
  }
}

}  // namespace haulout::agent
