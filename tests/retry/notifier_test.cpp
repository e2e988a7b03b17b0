#include "retry/notifier.hpp"

#include "retry/task_group.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout {
namespace {
using namespace std::chrono_literals;
namespace asio = boost::asio;

class NotifierTest : public testing::VirtualTimeTest {
 protected:
  Notifier notifier{context.get_executor()};

  asio::awaitable<void> notify_after(Duration delay) {
    co_await clock.sleep_until(clock.now() + delay);
    notifier.notify();
  }
};

TEST_F(NotifierTest, NotifiedBeforeTheWaitIsNotLost) {
  notifier.notify();
  notifier.notify();
  EXPECT_TRUE(run(notifier.wait_until(clock, start + 5s)));
  EXPECT_EQ(elapsed(), 0s);
  EXPECT_FALSE(run(notifier.wait_until(clock, start + 5s))) << "two notifications are one wake-up";
  EXPECT_EQ(elapsed(), 5s);
}

TEST_F(NotifierTest, WakesAtOnce) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(notify_after(2s));
    EXPECT_TRUE(co_await notifier.wait_until(clock, start + 60s));
    EXPECT_EQ(elapsed(), 2s);
  }));
}

TEST_F(NotifierTest, CancellationUnwinds) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    bool returned = false;
    auto waiter = [](Notifier& bell, Clock& time, bool& done) -> asio::awaitable<void> {
      co_await bell.wait_until(time, TimePoint::max());
      done = true;
    };
    const auto child = group.spawn(waiter(notifier, clock, returned));
    co_await clock.sleep_until(clock.now() + 1s);
    group.cancel(child);
    co_await group.join();
    EXPECT_FALSE(returned);
  }));
}

}  // namespace
}  // namespace haulout
