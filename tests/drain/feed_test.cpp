#include "drain/feed.hpp"

#include "tests/support/virtual_time.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr TimePoint start{1h};

TEST(HeldLong, IsDueEachIntervalWhileTheConditionHolds) {
  HeldLong held;
  EXPECT_FALSE(held.due(true, start)) << "it has only begun to hold";
  EXPECT_EQ(held.next(), start + doubt_interval);
  EXPECT_FALSE(held.due(true, start + doubt_interval - 1s));
  EXPECT_TRUE(held.due(true, start + doubt_interval));
  EXPECT_FALSE(held.due(true, start + doubt_interval + 1s));
  EXPECT_TRUE(held.due(true, start + 2 * doubt_interval));
}

TEST(HeldLong, BeginsAgainWhenTheConditionDidNotHold) {
  HeldLong held;
  held.due(true, start);
  EXPECT_FALSE(held.due(false, start + 1min));
  EXPECT_EQ(held.next(), TimePoint::max());
  EXPECT_FALSE(held.due(true, start + doubt_interval));
  EXPECT_EQ(held.next(), start + 2 * doubt_interval);
}

TEST(GatheredAt, AllViewsReadAtTheSameMoment) {
  EXPECT_EQ(gathered_at(start + 10ms, 40ms), gathered_at(start + 39ms, 40ms));
  EXPECT_EQ(gathered_at(start + 10ms, 40ms), start + 40ms);
  EXPECT_EQ(gathered_at(start, 40ms), start + 40ms) << "a view must never read without a pause";
  EXPECT_EQ(gathered_at(start + 10ms, 0ms), start + 10ms);
}

class SingleTaskTest : public testing::VirtualTimeTest {
 protected:
  asio::awaitable<void> pause(Duration duration) { co_await clock.sleep_until(clock.now() + duration); }
  SingleTask task;
};

TEST_F(SingleTaskTest, RunsUntilItsEnd) {
  run(with_task_group([this](TaskGroup& group) -> asio::awaitable<void> {
    EXPECT_FALSE(task.runs());
    task.start(group, pause(10s));
    EXPECT_TRUE(task.runs()) << "also before its first step";
    co_await pause(9s);
    EXPECT_TRUE(task.runs());
    co_await pause(2s);
    EXPECT_FALSE(task.runs());
    task.start(group, pause(1s));
    EXPECT_TRUE(task.runs());
    co_await group.join();
    EXPECT_FALSE(task.runs());
  }));
}

}  // namespace
}  // namespace haulout::drain
