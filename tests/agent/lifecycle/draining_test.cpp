#include "agent/lifecycle/draining.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

TEST(DrainCordon, ANodeThatHasNotShownTheCordonYetHasNotLostIt) {
  DrainCordon cordon(false);
  EXPECT_FALSE(cordon.lost(false, false));
  cordon.accept();
  EXPECT_TRUE(cordon.accepted());
  // The server has accepted the cordon, but the watch has not delivered it yet. So the cordon is not lost.
  EXPECT_FALSE(cordon.lost(false, false));
  EXPECT_FALSE(cordon.lost(true, false));
  EXPECT_TRUE(cordon.lost(false, false));
}

TEST(DrainCordon, ACordonOfSomebodyElseBeforeTheDrainsOwnProvesNothing) {
  DrainCordon cordon(false);
  EXPECT_FALSE(cordon.lost(true, false));
  EXPECT_FALSE(cordon.lost(false, false));
}

TEST(DrainCordon, ThatStoodBeforeARestartIsLostAtOnce) {
  DrainCordon cordon(true);
  EXPECT_FALSE(cordon.lost(true, false));
  EXPECT_FALSE(cordon.accepted());
  EXPECT_TRUE(cordon.lost(false, false));
}

TEST(DrainCordon, TheDiagnosisOfTheDrainCountsIfTheNodeIsSchedulable) {
  DrainCordon cordon(false);
  cordon.accept();
  EXPECT_TRUE(cordon.lost(false, true));
  // The watch shows that the node is cordoned again, so the drain continues.
  EXPECT_FALSE(cordon.lost(true, true));
}

}  // namespace
}  // namespace haulout::agent
