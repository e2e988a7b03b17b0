#include "agent/lifecycle/draining.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

TEST(DrainCordon, ANodeThatHasNotShownTheCordonYetHasNotLostIt) {
  DrainCordon cordon(false);
  EXPECT_FALSE(cordon.lost(false, false));
  cordon.accept();
  EXPECT_TRUE(cordon.accepted());
  // The watch is behind the answer of the server.
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
  // It was cordoned again: the drain goes on.
  EXPECT_FALSE(cordon.lost(true, true));
}

}  // namespace
}  // namespace haulout::agent
