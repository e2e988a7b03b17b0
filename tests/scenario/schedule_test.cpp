#include "tests/scenario/schedule.hpp"

#include <gtest/gtest.h>

namespace haulout::scenario {
namespace {

TEST(Schedule, LongestFirstListSchedulingOfSmallCases) {
  const struct {
    std::vector<std::int64_t> graces;
    std::size_t places;
    std::int64_t seconds;
  } rows[] = {{{5}, 1, 5}, {{1, 2, 3}, 1, 6}, {{3, 3, 2, 2, 2}, 2, 7}, {{1, 9, 4}, 0, 9}, {{4, 4, 4}, 5, 4}};
  for (const auto& row : rows)
    EXPECT_EQ(list_schedule(row.graces, row.places), std::chrono::seconds(row.seconds)) << row.places << " places";
}

TEST(Schedule, ADrainTakesHardlyLongerThanItsSchedule) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const auto graces = random_graces(seed);
    for (const std::size_t places : {0u, 1u, 2u, 5u, 10u}) {
      const Duration ideal = list_schedule(graces, places), taken = simulated_drain(graces, places, seed);
      EXPECT_GE(taken, ideal) << "seed " << seed << ": faster than possible, so the measurement is wrong";
      EXPECT_LE(taken, ideal * 102 / 100) << "seed " << seed << ", " << places << " places";
    }
  }
}

}  // namespace
}  // namespace haulout::scenario
