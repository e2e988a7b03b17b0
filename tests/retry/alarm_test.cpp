#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "retry/real_clock.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout {
namespace {
using namespace std::chrono_literals;

class AlarmTest : public testing::VirtualTimeTest {
 protected:
  int rings = 0;
  std::unique_ptr<Alarm> set(TimePoint when) {
    return clock.set_alarm(context.get_executor(), when, [this] { ++rings; });
  }
};

TEST_F(AlarmTest, RingsOnceAtItsTime) {
  const auto alarm = set(start + 2s);
  clock.run(start + 1s);
  EXPECT_EQ(rings, 0);
  clock.run(start + 10s);
  EXPECT_EQ(rings, 1);
}

TEST_F(AlarmTest, NotOnceItIsDestroyed) {
  auto alarm = set(start + 2s);
  clock.run(start + 1s);
  alarm.reset();
  clock.run(start + 10s);
  EXPECT_EQ(rings, 0);
  EXPECT_EQ(clock.sleepers(), 0u);
}

// An alarm may be due before the executor has run its handler. If it is destroyed then, the handler must not run.
TEST_F(AlarmTest, NotWhenItIsDestroyedInTheSameInstant) {
  auto first = set(start + 1s);
  auto second = set(start + 1s);
  first.reset();
  run(clock.sleep_until(start + 1s));
  EXPECT_EQ(rings, 1);

  RealClock real;
  boost::asio::io_context io{1};
  auto alarm = real.set_alarm(io.get_executor(), real.now() - 1s, [this] { ++rings; });
  auto killer = real.set_alarm(io.get_executor(), real.now() - 2s, [&alarm] { alarm.reset(); });
  io.run();
  EXPECT_EQ(rings, 1);
}

TEST_F(AlarmTest, TheRealOneRingsAndMayDestroyItself) {
  RealClock real;
  boost::asio::io_context io{1};
  std::unique_ptr<Alarm> alarm;
  alarm = real.set_alarm(io.get_executor(), real.now(), [&] {
    ++rings;
    alarm.reset();
  });
  io.run();
  EXPECT_EQ(rings, 1);
}

}  // namespace
}  // namespace haulout
