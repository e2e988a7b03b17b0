#include "agent/report/reporter.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

const TimePoint start{100h};

TEST(ApiHealthTest, NothingIsKnownBeforeTheFirstAnswer) {
  EXPECT_FALSE(ApiHealth().up(start));
}

TEST(ApiHealthTest, ASingleFailureIsNoOutage) {
  ApiHealth health;
  health.see(true, start);
  health.see(false, start + 1s);
  EXPECT_TRUE(health.up(start + 30s));
  EXPECT_FALSE(health.up(start + 31s));
  health.see(false, start + 40s);
  EXPECT_FALSE(health.up(start + 41s));
  health.see(true, start + 42s);
  EXPECT_TRUE(health.up(start + 10h)) << "nothing was asked since, so nothing has failed";
}

}  // namespace
}  // namespace haulout::agent
