#include "agent/node/record.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(HookRecord, ThePointOfEachState) {
  struct Case {
    State state;
    std::vector<std::string> passed;
    bool uncordon;
    HookPoint point;
  };
  const std::vector<Case> rows = {
      {State::draining, {}, false, HookPoint::before_drain},
      {State::draining, {"before-drain"}, false, HookPoint::after_drain},
      {State::verifying, {}, false, HookPoint::after_boot},
      {State::soaking, {"after-boot"}, false, HookPoint::before_release},
      {State::degraded, {}, false, HookPoint::after_boot},
      {State::degraded, {"after-boot"}, true, HookPoint::before_release},
  };
  for (const Case& row : rows) {
    Record record;
    record.state = row.state;
    record.hooks_passed = row.passed;
    record.uncordon = row.uncordon;
    EXPECT_EQ(hook_point_at(record), row.point) << to_string(row.state);
    EXPECT_EQ(asked_ticket(record), "");
    record.hooks_asked = WallTime(std::chrono::seconds(1));
    EXPECT_EQ(asked_ticket(record), hook_ticket(row.point, *record.hooks_asked));
  }
}

TEST(HookRecord, WhatHooksAreTold) {
  Record record;
  record.state = State::draining;
  record.from = "1.0";
  record.to = "1.1";
  record.reasons = {"linux-image", "two\nlines"};
  EXPECT_THAT(hook_environment("n1", HookPoint::after_drain, record),
              ElementsAre(Pair("HAULOUT_NODE", "n1"), Pair("HAULOUT_POINT", "after-drain"),
                          Pair("HAULOUT_STATE", "draining"), Pair("HAULOUT_FROM_VERSION", "1.0"),
                          Pair("HAULOUT_TO_VERSION", "1.1"), Pair("HAULOUT_REASONS", "linux-image\ntwo lines")));
}

}  // namespace
}  // namespace haulout::agent
