#include "retry/deadline.hpp"

#include "retry/task_group.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout {
namespace {
using namespace std::chrono_literals;
namespace asio = boost::asio;

class DeadlineTest : public testing::VirtualTimeTest {
 protected:
  Task<int> answer_after(Duration delay, int value) {
    co_await clock.sleep_until(clock.now() + delay);
    co_return value;
  }
  Task<int> throw_after(Duration delay) {
    co_await clock.sleep_until(clock.now() + delay);
    throw std::runtime_error("boom");
  }
};

TEST_F(DeadlineTest, ResultBeforeTheDeadline) {
  auto result = run(with_deadline(clock, start + 10s, answer_after(3s, 7)));
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 7);
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(DeadlineTest, TimeoutAtTheDeadline) {
  auto result = run(with_deadline(clock, start + 2s, answer_after(30s, 7)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::timeout);
  EXPECT_EQ(elapsed(), 2s);
}

// If an operation completes although it is cancelled at the deadline, its result counts.
TEST_F(DeadlineTest, AResultInTheInstantOfTheDeadlineCounts) {
  const auto answer_all_the_same = [](Clock& time, TimePoint until) -> Task<int> {
    co_await asio::this_coro::throw_if_cancelled(false);
    try {
      co_await time.sleep_until(until);
    } catch (const boost::system::system_error&) {
    }
    co_return 7;
  };
  auto result = run(with_deadline(clock, start + 2s, answer_all_the_same(clock, start + 30s)));
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 7);
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(DeadlineTest, ExceptionIsNotLostAndEndsTheWaitAtOnce) {
  EXPECT_THROW((void)run(with_deadline(clock, start + 100s, throw_after(1s))), std::runtime_error);
  EXPECT_EQ(elapsed(), 1s);
}

// A wait that has ended must leave no cancellation handler behind. A later cancellation of the caller would call it.
// (Only the builds with sanitizers find this defect.)
TEST_F(DeadlineTest, CancellingOneselfAfterwardsReachesNothing) {
  int answer = 0;
  const auto body = [&](TaskGroup& group) -> asio::awaitable<void> {
    const auto result = co_await with_deadline(clock, start + 10s, answer_after(3s, 7));
    answer = result ? *result : 0;
    group.cancel();
  };
  run(with_task_group(body));
  EXPECT_EQ(answer, 7);
}

TEST_F(DeadlineTest, CancellingTheCallerIsNoTimeout) {
  auto outer = [](Clock& time, Task<int> inner, TimePoint deadline) -> Task<int> {
    co_return co_await with_deadline(time, deadline, std::move(inner));
  };
  // The outer deadline passes first. The result is the timeout of the outer call, not of the inner one.
  auto result = run(with_deadline(clock, start + 1s, outer(clock, answer_after(30s, 7), start + 20s)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::timeout);
  EXPECT_EQ(elapsed(), 1s);
}

}  // namespace
}  // namespace haulout
