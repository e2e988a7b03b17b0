#include "agent/service/quiet_memory.hpp"

#include <fstream>

#include "retry/task_group.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

class QuietMemoryTest : public haulout::testing::VirtualTimeTest {
 protected:
  std::vector<Duration> given_back;
  QuietMemory memory{context.get_executor(), clock, [this] { given_back.push_back(elapsed()); }};

  // Reports activity at these times, while `memory` runs for ten minutes.
  void live(std::vector<Duration> news) {
    run(with_task_group([&](TaskGroup& group) {
      group.spawn(memory.run());
      return tell(std::move(news));
    }));
  }

 private:
  boost::asio::awaitable<void> tell(std::vector<Duration> news) {
    for (const Duration at : news) {
      co_await clock.sleep_until(start + at);
      memory.stir();
    }
    co_await clock.sleep_until(start + 10min);
  }
};

TEST_F(QuietMemoryTest, IsGivenBackOnceAfterEachTimeOfNews) {
  live({0s, 15s, 30s, 2min});
  EXPECT_EQ(given_back, (std::vector<Duration>{30s + QuietMemory::quiet, 2min + QuietMemory::quiet}));
}

TEST_F(QuietMemoryTest, IsLeftAloneWhileNothingHappens) {
  live({});
  EXPECT_TRUE(given_back.empty());
}

long resident_pages() {
  long size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident;
}

TEST(GiveMemoryBack, LeavesTheProcessSmallerAndWell) {
  const long before = resident_pages();
  give_memory_back();
  EXPECT_LT(resident_pages(), before - 256);  // 256 pages are a megabyte; the program uses many
  EXPECT_THROW(throw std::runtime_error("whatever was dropped comes back"), std::runtime_error);
}

}  // namespace
}  // namespace haulout::agent
