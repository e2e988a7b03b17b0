#include "agent/gates/gate.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;
using Reasons = std::vector<std::string>;

const WallTime now = utc("2026-11-21T12:00");

Pending wanted(Reasons reasons, std::string target = "") {
  return {.need = Need::yes, .reasons = std::move(reasons), .target = std::move(target)};
}

PastReboot reboot(const std::string& at, Reasons reasons, std::string target = "", bool cleared = false) {
  return {utc(at), std::move(reasons), std::move(target), cleared};
}

TEST(RebootBrakeTest, ARebootThatChangesNothing) {
  struct Row {
    std::vector<PastReboot> past;
    Pending wanted;
    bool loop;
    const char* why;
  };
  const std::string before = "2026-11-01T03:00";
  const std::vector<Row> rows = {
      {{}, wanted({"linux-image"}), false, "the first reboot"},
      {{reboot(before, {"linux-image"})}, wanted({"linux-image"}), true, "still there"},
      {{reboot(before, {"linux-image"}, "", true)}, wanted({"linux-image"}), false, "there again: the next kernel"},
      {{reboot(before, {"linux-image", "libc6"})}, wanted({"libc6"}), true, "one of them is still there"},
      {{reboot(before, {"libc6", "linux-image"})}, wanted({"linux-image", "libc6"}), true, "in another order"},
      {{reboot(before, {"libc6"})}, wanted({"libc6", "linux-image"}), false, "something new"},
      {{reboot(before, {"libc6"})}, wanted({"linux-image"}), false, "something else"},
      {{reboot(before, {"libc6"})}, wanted({}), true, "no reason, so nothing new"},
      {{reboot(before, {})}, wanted({}), true, "a sentinel that is left over"},
      {{reboot(before, {}, "", true)}, wanted({}), false, "a sentinel that came again"},
      {{reboot(before, {})}, wanted({"libc6"}), false, "now it has a reason"},
      {{reboot(before, {"update"}, "1.20")}, wanted({"update"}, "1.20"), true, "the staged version did not boot"},
      {{reboot(before, {"update"}, "1.20")}, wanted({"other words"}, "1.20"), true, "the target counts"},
      {{reboot(before, {"update"}, "1.20")}, wanted({"update"}, "1.21"), false, "the next version"},
      {{reboot(before, {"update"}, "1.20", true)}, wanted({"update"}, "1.20"), false, "went away in between"},
      {{reboot(before, {"update"})}, wanted({"update"}, "1.20"), false, "another back end"},
      {{reboot(before, {"update"}, "1.20")}, wanted({"update"}), false, "another back end"},
      {{reboot(before, {"linux-image"}), reboot(before, {"libc6"})},
       wanted({"linux-image"}),
       false,
       "only the last counts"},
  };
  for (const Row& row : rows) {
    const auto brake = reboot_brake(row.past, row.wanted, now);
    ASSERT_EQ(brake.has_value(), row.loop) << row.why;
    if (!brake) continue;
    EXPECT_EQ(brake->reason, "RebootLoop") << row.why;
    EXPECT_EQ(brake->look_again, std::nullopt) << "time does not heal it: " << row.why;
    EXPECT_THAT(brake->message, HasSubstr("2026-11-01T03:00:00Z")) << row.why;
  }
}

TEST(RebootBrakeTest, NeverForANeedThatIsNotYes) {
  const std::vector<PastReboot> past = {reboot("2026-11-21T11:00", {"libc6"})};
  for (const Need need : {Need::no, Need::unknown})
    EXPECT_EQ(reboot_brake(past, {.need = need, .reasons = {"libc6"}}, now), std::nullopt);
}

TEST(RebootBrakeTest, TooManyInADay) {
  struct Row {
    std::vector<std::string> past;
    std::size_t per_day;
    std::string released;  // time at which the reboot limit permits a reboot again; empty if it permits one now
  };
  const std::vector<Row> rows = {
      {{}, 3, ""},
      {{"2026-11-21T09:00", "2026-11-21T10:00"}, 3, ""},
      {{"2026-11-21T09:00", "2026-11-21T10:00", "2026-11-21T11:00"}, 3, "2026-11-22T09:00"},
      {{"2026-11-20T12:00", "2026-11-21T10:00", "2026-11-21T11:00"}, 3, ""},  // exactly one day ago
      {{"2026-11-20T12:01", "2026-11-21T10:00", "2026-11-21T11:00"}, 3, "2026-11-21T12:01"},
      {{"2026-11-21T08:00", "2026-11-21T09:00", "2026-11-21T10:00", "2026-11-21T11:00"}, 3, "2026-11-22T09:00"},
      {{"2026-11-21T11:00", "2026-11-21T09:00", "2026-11-21T10:00"}, 3, "2026-11-22T09:00"},  // in any order
      {{"2026-11-21T11:00"}, 1, "2026-11-22T11:00"},
      {{"2026-11-20T11:00"}, 1, ""},
      {{"2026-11-22T11:00"}, 1, "2026-11-23T11:00"},  // the clock was set back
      {{"2026-12-01T00:00"}, 1, ""},                  // the clock had been far ahead
      {{}, 0, ""},                                    // 0 means no limit
      {{"2026-11-21T09:00", "2026-11-21T10:00", "2026-11-21T11:00", "2026-11-21T11:30"}, 0, ""},
  };
  for (const Row& row : rows) {
    std::vector<PastReboot> past;
    for (const std::string& at : row.past) past.push_back(reboot(at, {"reason of " + at}, "", true));
    const auto brake = reboot_brake(past, wanted({"libc6"}), now, row.per_day);
    ASSERT_EQ(brake.has_value(), !row.released.empty()) << row.past.size();
    if (!brake) continue;
    EXPECT_EQ(brake->reason, "TooManyReboots");
    EXPECT_EQ(utc(brake->look_again), row.released);
    ASSERT_TRUE(brake->look_again);
    EXPECT_EQ(reboot_brake(past, wanted({"libc6"}), *brake->look_again, row.per_day), std::nullopt) << "released then";
  }
}

// For the newest reboot, only the request is known. It may have led to a reboot that the agent has not observed, or to
// none. So it counts against the limit of reboots per day, but does not show that a reboot leaves the need unchanged.
TEST(RebootBrakeTest, WhatWasOnlyAskedForCountsToo) {
  PastReboot asked = reboot("2026-11-21T11:00", {"libc6"});
  asked.asked_only = true;
  const std::vector<PastReboot> past{reboot("2026-11-21T09:00", {"linux-image"}), asked};
  EXPECT_FALSE(reboot_brake(past, wanted({"libc6"}), now, 3));
  EXPECT_EQ(reboot_brake(past, wanted({"libc6"}), now, 2)->reason, "TooManyReboots");
  EXPECT_EQ(reboot_brake(past, wanted({"linux-image"}), now, 3)->reason, "RebootLoop") << "the last that was seen";
}

TEST(RebootBrakeTest, TheDefaultIsThreeADay) {
  std::vector<PastReboot> past(2, reboot("2026-11-21T11:00", {}, "", true));
  EXPECT_EQ(reboot_brake(past, wanted({}), now), std::nullopt);
  past.push_back(past.front());
  EXPECT_NE(reboot_brake(past, wanted({}), now), std::nullopt);
}

// Reboots years in the future do not count against the limit: the clock was wrong when they were recorded, or is wrong
// now. Reboots a few hours in the future do count, because the clock may have been set back a little.
TEST(RebootBrakeTest, RebootsOfTheFutureDoNotHoldItForYears) {
  std::vector<PastReboot> past;
  for (int day = 1; day <= 3; ++day) past.push_back(reboot(fmt::format("2031-01-0{}T03:00", day), {"old"}, "", true));
  EXPECT_EQ(reboot_brake(past, wanted({"new"}), now), std::nullopt);
  past.clear();
  for (int hour = 13; hour <= 15; ++hour)
    past.push_back(reboot(fmt::format("2026-11-21T{}:00", hour), {"old"}, "", true));
  EXPECT_TRUE(reboot_brake(past, wanted({"new"}), now)) << "a clock that was put back by an hour or two";
}

}  // namespace
}  // namespace haulout::agent
