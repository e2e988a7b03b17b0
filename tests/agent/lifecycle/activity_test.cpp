// Tests which decision ends the activity of a state, and what an interruption does.
#include "agent/lifecycle/context.hpp"

#include <gmock/gmock.h>

#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;

struct ActivityTest : haulout::testing::VirtualTimeTest {
  int removed = 0;  // number of times that the ready file was removed
  Activity activity{context.get_executor(), clock, [this] { ++removed; }};
  const Decision paused{Event::gate_closed, "Paused", "paused by jane"};
};

TEST_F(ActivityTest, TheLatestDecisionCounts) {
  EXPECT_FALSE(activity.ended());
  activity.decide({Event::turn_lost});
  activity.decide(paused);
  EXPECT_TRUE(activity.ended());
  EXPECT_EQ(activity.decision(), paused);
  activity.interrupt(cordon_lost());
  EXPECT_EQ(activity.decision(), cordon_lost());
}

TEST_F(ActivityTest, ADecisionCarriesItsOwnCause) {
  activity.decide(paused);
  activity.decide({Event::turn_lost});
  EXPECT_EQ(activity.decision()->event, Event::turn_lost);
  EXPECT_EQ(activity.decision()->cause, "");
}

TEST_F(ActivityTest, AnInterruptionRemovesTheReadyFileAndStopsTheWork) {
  int stopped = 0;
  activity.on_interrupt([&] { ++stopped; });
  activity.decide(paused);
  EXPECT_EQ(removed, 0);
  EXPECT_EQ(stopped, 0);
  activity.interrupt(paused);
  EXPECT_EQ(removed, 1);
  EXPECT_EQ(stopped, 1);
  activity.on_interrupt(nullptr);
  activity.interrupt(paused);
  EXPECT_EQ(stopped, 1);
}

TEST_F(ActivityTest, TheNextActivityBeginsUndecided) {
  activity.decide(paused);
  activity.begin();
  EXPECT_FALSE(activity.ended());
  EXPECT_EQ(activity.decision(), std::nullopt);
}

TEST_F(ActivityTest, OnlyAReadingOfTheNodeEndsTheNeedForIt) {
  activity.interrupt_to_reload();
  EXPECT_EQ(removed, 1);
  activity.decide(paused);
  activity.begin();
  EXPECT_TRUE(activity.must_reload());
  EXPECT_TRUE(activity.ended());
  activity.reloading();
  EXPECT_FALSE(activity.ended());
}

TEST_F(ActivityTest, AWaitEndsAtOnceIfTheNodeHasToBeReadAgain) {
  activity.reload();
  run(activity.wait(start + 1h));
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(ActivityTest, AWaitEndsByAWakeUpOrInTime) {
  activity.interrupt(paused);
  run(activity.wait(start + 1h));
  EXPECT_EQ(elapsed(), 0s);
  run(activity.wait(start + 1h));
  EXPECT_EQ(elapsed(), 1h);
}

}  // namespace
}  // namespace haulout::agent
