// Fixture for back ends that watch files, with real files and inotify in virtual time. inotify events are available at
// once. So a wait that lasts until the safety net (the periodic recheck) has received no event.
#pragma once

#include <gmock/gmock.h>

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

  // Returns how long changed() took if `act` ran one virtual minute after the call.
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
  // Returns how long changed() takes if nothing happens.
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
