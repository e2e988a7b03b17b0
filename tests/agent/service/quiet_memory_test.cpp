#include "agent/service/quiet_memory.hpp"

#include <dlfcn.h>

#include <fstream>
#include <string>
#include <vector>

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

// Memory that only this process uses, in kB.
long private_memory() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  long sum = 0;
  for (std::string word; rollup >> word;) {
    long kilobytes = 0;
    if ((word == "Private_Clean:" || word == "Private_Dirty:") && rollup >> kilobytes) sum += kilobytes;
  }
  return sum;
}

TEST(GiveMemoryBack, ReturnsFreeHeapToTheSystem) {
  // The allocator of a sanitizer keeps freed heap, whatever malloc_trim says.
  if (::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr) GTEST_SKIP();
  constexpr std::size_t block = 16 * 1024, blocks = 1000;
  std::vector<std::string> used;
  for (std::size_t i = 0; i < blocks; ++i) used.emplace_back(block, 'x');
  const std::string above(block, 'y');  // keeps the end of the heap in use: free() alone returns memory only there
  used.clear();
  const long before = private_memory();
  give_memory_back();
  EXPECT_LT(private_memory(), before - 10'000);
  EXPECT_EQ(above.size(), block);
}

}  // namespace
}  // namespace haulout::agent
