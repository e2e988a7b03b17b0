#include "agent/gates/gate.hpp"

#include <gtest/gtest.h>

#include "agent/node/record.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using History = std::vector<std::chrono::seconds>;

TEST(DurationHistoryTest, TheLongestAndAFifthMore) {
  struct Row {
    History history;
    Duration expected;
  };
  const std::vector<Row> rows = {
      {{}, 30min},
      {{100s}, 120s},
      {{100s, 300s, 200s}, 360s},
      {{1s}, 2s},  // rounded up
      {{7s}, 9s},
      {{0s}, 30min},
      {{-5s, 0s}, 30min},
      {{-5s, 50s}, 60s},
      {{9000s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s}, 12s},  // only the last ten durations count
      {{9000s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s}, 10800s},
      {{std::chrono::seconds::max()}, 725760s},
      {{std::chrono::seconds::min()}, 30min},
  };
  for (const Row& row : rows) EXPECT_EQ(estimated_update(row.history).count(), row.expected.count());
}

TEST(DurationHistoryTest, TheOneInTheMiddleAndAFifthMore) {
  struct Row {
    History history;
    Duration expected;
  };
  const std::vector<Row> rows = {
      {{}, 0s},
      {{0s, -5s}, 0s},
      {{100s}, 120s},
      {{9000s, 100s}, 120s},
      {{50s, 9000s, 100s}, 120s},
      {{std::chrono::seconds::max()}, 725760s},
  };
  for (const Row& row : rows) EXPECT_EQ(ordinary_update(row.history).count(), row.expected.count());
}

TEST(DurationHistoryTest, KeepsTheLastTen) {
  History history;
  for (int i = 1; i <= 13; ++i) history = remembered(std::move(history), std::chrono::seconds(i));
  EXPECT_EQ(history, (History{4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s, 13s}));
  EXPECT_EQ(remembered(History{}, std::chrono::seconds(5)), History{5s});
  EXPECT_EQ(remembered(History(50, 1s), std::chrono::seconds(2)).size(), remembered_updates)
      << "a record from elsewhere may be longer";
}

}  // namespace
}  // namespace haulout::agent
