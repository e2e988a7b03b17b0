// P8: a node whose agent has died does not hold up for ever those that come after it in the order.
#include "agent/slots/line_patience.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<EarlierNode> line{{"n1", "n1", true, 0}, {"n2", "n2", false, 1}};
const std::set<std::string> waiting{"n1", "n2"};
const TimePoint begin{1h};

TEST(LinePatienceTest, TheFirstIsPassedOverWhenItLeavesASlotForTooLong) {
  LinePatience patience;
  EXPECT_EQ(patience.next(), TimePoint::max());
  patience.watch(line, begin);
  EXPECT_EQ(patience.next(), begin + order_patience);
  patience.watch(line, begin + order_patience - 1s);
  EXPECT_THAT(patience.passed_over(waiting, begin + order_patience - 1s), IsEmpty());
  patience.watch(line, begin + order_patience - 1s);
  patience.watch(line, begin + order_patience);
  EXPECT_EQ(patience.next(), begin + order_patience) << "looks again at once";
  EXPECT_THAT(patience.passed_over(waiting, begin + order_patience), ElementsAre("n1"))
      << "the second had no chance yet";
  patience.watch({{"n2", "n2", true, 0}}, begin + order_patience);
  EXPECT_EQ(patience.next(), begin + 2 * order_patience) << "now it has";
}

// Other nodes take the slot in between, which have waited for longer and pass the first one over earlier. If the time
// began anew with each of them, a dead agent would cost ten minutes for each slot.
TEST(LinePatienceTest, OnlyTheTimeCountsInWhichASlotIsFree) {
  LinePatience patience;
  patience.watch(line, begin);
  patience.stop(begin + 5min);
  EXPECT_THAT(patience.passed_over(waiting, begin + 6min), IsEmpty());
  patience.watch({}, begin + 6min);
  EXPECT_EQ(patience.next(), TimePoint::max());
  EXPECT_THAT(patience.passed_over(waiting, begin + 1h), IsEmpty());
  patience.watch(line, begin + 1h);
  EXPECT_EQ(patience.next(), begin + 1h + order_patience - 5min);
  EXPECT_THAT(patience.passed_over(waiting, begin + 1h + order_patience - 5min - 1s), IsEmpty());
  patience.watch(line, begin + 1h + order_patience - 5min - 1s);
  EXPECT_THAT(patience.passed_over(waiting, begin + 1h + order_patience - 5min), ElementsAre("n1"));
}

TEST(LinePatienceTest, WhoWasPassedOverStaysSoUntilItsAgentActs) {
  LinePatience patience;
  const TimePoint end = begin + order_patience;
  patience.watch(line, begin);
  patience.watch(line, end);
  patience.watch({}, end);
  EXPECT_THAT(patience.passed_over(waiting, end), ElementsAre("n1"));
  EXPECT_THAT(patience.passed_over({"n2"}, end), IsEmpty());
  EXPECT_THAT(patience.passed_over(waiting, end), IsEmpty());
}

// Nodes of the same place take turns. A slot that is free for one of them is free for all, so each of them would be
// passed over after many slots that the others have taken within seconds.
TEST(LinePatienceTest, WhatALiveNodeLeavesFreeDoesNotCountForTheNodesAfterIt) {
  LinePatience patience;
  const std::vector<EarlierNode> equal{
      {"n0", "n0", true, 0}, {"n1", "n1", true, 1}, {"n2", "n2", true, 1}, {"n3", "n3", true, 2}};
  patience.watch(equal, begin);
  patience.stop(begin + 9min);
  EXPECT_THAT(patience.passed_over({"n0", "n2", "n3"}, begin + 9min), IsEmpty()) << "n1 has taken the slot";
  patience.watch({{"n0", "n0", true, 0}, {"n2", "n2", true, 1}, {"n3", "n3", true, 2}}, begin + 9min);
  EXPECT_EQ(patience.next(), begin + 10min) << "n0 goes before n1, and has left the slot to it";
  EXPECT_THAT(patience.passed_over({"n0", "n2", "n3"}, begin + 10min), ElementsAre("n0"));
  patience.watch({{"n2", "n2", true, 0}, {"n3", "n3", true, 1}}, begin + 10min);
  EXPECT_EQ(patience.next(), begin + 19min);
}

TEST(LinePatienceTest, ANodeThatShowsLifeBeginsAnew) {
  LinePatience patience;
  patience.watch({{"n1", "n1", true, 0}, {"n2", "n2", true, 1}}, begin);
  patience.watch({{"n1", "n1", true, 0}, {"n2", "n2", false, 1}}, begin + 9min);
  patience.watch({{"n1", "n1", true, 0}, {"n2", "n2", true, 1}}, begin + 9min);
  EXPECT_THAT(patience.passed_over(waiting, begin + 10min), ElementsAre("n1"));
}

}  // namespace
}  // namespace haulout::agent
