#include "retry/task_group.hpp"

#include "retry/deadline.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout {
namespace {
using namespace std::chrono_literals;
namespace asio = boost::asio;

class TaskGroupTest : public testing::VirtualTimeTest {
 protected:
  int alive = 0;
  int finished = 0;

  asio::awaitable<void> work(Duration duration) {
    struct Alive {
      int& count;
      explicit Alive(int& counter) : count(counter) { ++count; }
      ~Alive() { --count; }
    } guard(alive);
    co_await clock.sleep_until(clock.now() + duration);
    ++finished;
  }
  asio::awaitable<void> fail_after(Duration delay) {
    co_await clock.sleep_until(clock.now() + delay);
    throw std::runtime_error("boom");
  }
};

TEST_F(TaskGroupTest, JoinWaitsForAll) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    for (int i = 1; i <= 10; ++i) group.spawn(work(i * 1s));
    EXPECT_EQ(group.size(), 10u);
    co_await group.join();
    EXPECT_EQ(finished, 10);
  }));
  EXPECT_EQ(elapsed(), 10s);
}

TEST_F(TaskGroupTest, LeavingTheBodyCancelsAndJoins) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(work(1h));
    co_await clock.sleep_until(clock.now() + 1s);
    EXPECT_EQ(alive, 1);
  }));
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(finished, 0);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(TaskGroupTest, FailureOfAChildEndsSiblingsAndBody) {
  EXPECT_THROW(run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
                 group.spawn(work(1h));
                 group.spawn(fail_after(2s));
                 co_await clock.sleep_until(clock.now() + 2h);
               })),
               std::runtime_error);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(TaskGroupTest, CancellingTheCallerEndsEverything) {
  auto scope = [this]() -> Task<int> {
    co_await with_task_group([this](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(work(1h));
      group.spawn(work(2h));
      co_await group.join();
    });
    co_return 1;
  };
  auto result = run(with_deadline(clock, start + 3s, scope()));
  ASSERT_FALSE(result);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(TaskGroupTest, OneChildCanBeCancelled) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    const auto first = group.spawn(work(1h));
    group.spawn(work(5s));
    co_await clock.sleep_until(clock.now() + 1s);
    group.cancel(first);
    co_await group.join();
    EXPECT_EQ(finished, 1);
  }));
  EXPECT_EQ(elapsed(), 5s);
}

// A child ends with `operation_aborted` although no code has cancelled it. If this were not an error, the cause of its
// end would be lost.
TEST_F(TaskGroupTest, AnAbortThatNobodyAskedForIsAFailure) {
  const auto aborted = []() -> asio::awaitable<void> {
    throw boost::system::system_error(asio::error::operation_aborted);
    co_return;
  };
  const auto child = [&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(aborted());
    co_await group.join();
  };
  const auto body = [&](TaskGroup&) { return aborted(); };
  EXPECT_THROW(run(with_task_group(body)), boost::system::system_error);
  EXPECT_THROW(run(with_task_group(child)), boost::system::system_error);
}

TEST_F(TaskGroupTest, SpawnAfterCancelEndsAtOnce) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.cancel();
    group.spawn(work(1h));
    co_return;
  }));
  EXPECT_EQ(finished, 0);
  EXPECT_EQ(elapsed(), 0s);
}

}  // namespace
}  // namespace haulout
