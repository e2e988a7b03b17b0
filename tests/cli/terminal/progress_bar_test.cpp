#include "cli/terminal/progress_bar.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;

constexpr Terminal plain{80, 24, false, false};

TEST(ProgressLineTest, HasABarIfTheTotalIsKnown) {
  EXPECT_EQ(progress_line({"rehearsing", 500, 2000, "nodes"}, 65s, plain),
            "rehearsing  [##########------------------------------]  500/2000 nodes  1m05s");
  EXPECT_EQ(progress_line({"reading the snapshot", 12345, 0, "objects"}, 3s, plain),
            "reading the snapshot  12345 objects  3s");
}

TEST(ProgressLineTest, FitsEveryWidth) {
  for (const bool utf8 : {true, false})
    for (std::size_t width = 0; width < 120; ++width) {
      const std::string line = progress_line({"rehearsing", 1999, 2000, "nodes"}, 3h, {width, 24, utf8, false});
      EXPECT_LE(columns(line), width) << line;
    }
}

class ProgressBarTest : public haulout::testing::VirtualTimeTest {
 protected:
  ProgressBarTest() {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
    sink_.emplace(ends_[1]);
  }
  ~ProgressBarTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  ProgressBar a_bar(bool on_terminal = true) {
    return {*sink_, clock, on_terminal ? [] { return plain; } : std::function<Terminal()>()};
  }
  // Returns what was written since the last call. The pipe must not be empty, so each call begins with a mark.
  std::string written() {
    if (::write(ends_[1], ".", 1) != 1) return "the pipe is broken";
    char bytes[4096];
    const ssize_t length = ::read(ends_[0], bytes, sizeof bytes);
    return length < 1 ? std::string() : std::string(bytes, static_cast<std::size_t>(length) - 1);
  }

 private:
  int ends_[2] = {-1, -1};
  std::optional<agent::FdSink> sink_;
};

TEST_F(ProgressBarTest, IsDrawnTenTimesASecondAtMost) {
  run([this]() -> boost::asio::awaitable<void> {
    ProgressBar bar = a_bar();
    bar.show({"reading", 1, 0, "objects"});
    EXPECT_EQ(written(), "reading  1 objects  0ms\n");
    bar.show({"reading", 2, 0, "objects"});
    EXPECT_EQ(written(), "") << "too early";
    co_await clock.sleep_until(clock.now() + ProgressBar::shortest_gap);
    bar.show({"reading", 3, 0, "objects"});
    EXPECT_EQ(written(), "\r\x1b[1A\x1b[Jreading  3 objects  0ms\n");
    bar.show({"working", 0, 0, "nodes"});
    EXPECT_EQ(written(), "\r\x1b[1A\x1b[Jworking  0 nodes  0ms\n") << "the next step is shown at once";
    bar.clear();
    EXPECT_EQ(written(), "\r\x1b[1A\x1b[J");
    bar.clear();
    EXPECT_EQ(written(), "");
  }());
}

TEST_F(ProgressBarTest, NothingIsWrittenToAFile) {
  ProgressBar bar = a_bar(false);
  bar.show({"reading", 1, 0, "objects"});
  bar.clear();
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace haulout::cli
