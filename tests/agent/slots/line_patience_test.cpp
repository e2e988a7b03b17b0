// P8: a node whose agent has died does not hold up for ever those that come after it in the order.
#include "agent/slots/line_patience.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<EarlierNode> line{{"n1", "n1", true}, {"n2", "n2", false}};
const std::set<std::string> waiting{"n1", "n2"};
const TimePoint begin{1h};

TEST(LinePatienceTest, TheFirstIsPassedOverWhenItLeavesASlotForTooLong) {
  LinePatience patience;
  EXPECT_EQ(patience.next(), TimePoint::max());
  patience.watch(line, begin);
  EXPECT_EQ(patience.next(), begin + order_patience);
  patience.watch(line, begin + order_patience - 1s);
  EXPECT_THAT(patience.passed_over(waiting), IsEmpty());
  patience.watch(line, begin + order_patience);
  EXPECT_THAT(patience.passed_over(waiting), ElementsAre("n1")) << "the second had no chance yet";
  EXPECT_EQ(patience.next(), begin + order_patience) << "looks again at once";
  patience.watch({{"n2", "n2", true}}, begin + order_patience);
  EXPECT_EQ(patience.next(), begin + 2 * order_patience) << "now it has";
}

TEST(LinePatienceTest, TheTimeBeginsAnewWhenNoSlotIsFree) {
  LinePatience patience;
  patience.watch(line, begin);
  patience.watch({}, begin + 5min);
  EXPECT_EQ(patience.next(), TimePoint::max());
  patience.watch(line, begin + 6min);
  patience.watch(line, begin + order_patience);
  EXPECT_THAT(patience.passed_over(waiting), IsEmpty());
  patience.watch(line, begin + 6min + order_patience);
  EXPECT_THAT(patience.passed_over(waiting), ElementsAre("n1"));
}

TEST(LinePatienceTest, WhoWasPassedOverStaysSoUntilItsAgentActs) {
  LinePatience patience;
  patience.watch(line, begin);
  patience.watch(line, begin + order_patience);
  patience.watch({}, begin + order_patience);
  EXPECT_THAT(patience.passed_over(waiting), ElementsAre("n1"));
  EXPECT_THAT(patience.passed_over({"n2"}), IsEmpty());
  EXPECT_THAT(patience.passed_over(waiting), IsEmpty());
}

}  // namespace
}  // namespace haulout::agent
