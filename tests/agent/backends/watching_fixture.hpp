// Back ends that watch files, with real files and inotify in virtual time: what inotify has to tell is there at once,
// so a wait that lasts as long as the safety net has heard nothing.
#pragma once

#include <gmock/gmock.h>

#include "agent/backends/recheck.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"
#include "retry/rng.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {

class WatchingTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};
  SeededRng rng{1};

  Pending pending(Backend& backend) { return run(backend.pending(TimePoint::max())); }

  // How long changed() took when `act` happened a virtual minute after it was called.
  Duration woken_after(Backend& backend, const std::function<void()>& act) {
    const TimePoint begin = clock.now();
    std::optional<TimePoint> woken;
    const std::function<boost::asio::awaitable<void>(TaskGroup&)> body =
        [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(wait(backend, woken));
      co_await clock.sleep_until(begin + std::chrono::minutes(1));
      act();
      co_await group.join();
    };
    run(with_task_group(body));
    return *woken - begin;
  }
  // How long changed() takes when nothing happens any more.
  Duration woken_after(Backend& backend) {
    const TimePoint begin = clock.now();
    run(backend.changed());
    return clock.now() - begin;
  }

 private:
  boost::asio::awaitable<void> wait(Backend& backend, std::optional<TimePoint>& woken) {
    co_await backend.changed();
    woken = clock.now();
  }
};

inline constexpr Duration at_once = Duration::zero();
inline constexpr Duration a_minute = std::chrono::minutes(1);
inline auto only_the_safety_net() {
  return ::testing::AllOf(::testing::Ge(recheck_interval * 4 / 5), ::testing::Le(recheck_interval * 6 / 5));
}

}  // namespace haulout::agent
