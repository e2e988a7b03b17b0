#include "agent/report/metrics.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

constexpr std::string_view stat = "cpu  1 2 3\nintr 5\nctxt 7\nbtime 1700000000\nprocesses 9\n";

TEST(ProcessFiguresTest, FieldsAreThoseOfTheManualWhateverTheProgramIsCalled) {
  const auto figures = parse_process_stat(
      "42 (a b) R 1) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0 1000 12345678 2560 18446744073709551615\n",
      stat, {.ticks_per_second = 100, .page_bytes = 4096});
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->cpu_seconds, 2.0);
  EXPECT_EQ(figures->start_time_seconds, 1700000010.0);
  EXPECT_EQ(figures->virtual_bytes, 12345678.0);
  EXPECT_EQ(figures->resident_bytes, 2560.0 * 4096);
}

TEST(ProcessFiguresTest, AnythingElseIsNothing) {
  EXPECT_FALSE(parse_process_stat("", stat, {}));
  EXPECT_FALSE(parse_process_stat("42 (x) S 1 2 3", stat, {}));
  EXPECT_FALSE(parse_process_stat("42 (x) S 1 42 42 0 -1 4 1 2 3 4 150 50 7 8 20 0 1 0 1000 1 2 3", "", {}));
  EXPECT_FALSE(parse_process_stat("42 (x) S 1 42 42 0 -1 4 1 2 3 4 many 50 7 8 20 0 1 0 1000 1 2 3", stat, {}));
}

TEST(ProcessFiguresTest, ThisProcessHasFigures) {
  const auto figures = read_process_figures();
  ASSERT_TRUE(figures);
  EXPECT_GT(figures->resident_bytes, 1e6);
  EXPECT_GT(figures->virtual_bytes, figures->resident_bytes);
  EXPECT_GT(figures->open_fds, 2);
  EXPECT_GT(figures->max_fds, figures->open_fds);
  EXPECT_GT(figures->start_time_seconds, 1.6e9);
}

}  // namespace
}  // namespace haulout::agent
