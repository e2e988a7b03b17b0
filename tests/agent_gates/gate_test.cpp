// The rows that people see. 2026-11-21 is a Saturday.
#include "agent/gates/gate.hpp"

#include "tests/agent_gates/gates_support.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

Names names(const std::vector<Gate>& rows, bool open) {
  Names found;
  for (const Gate& gate : rows) {
    if (gate.open == open) found.push_back(gate.name);
  }
  return found;
}

TEST(GateTest, AllOpen) {
  const auto rows = gates({.now = utc("2026-11-21T00:00")});
  EXPECT_EQ(names(rows, true), (Names{"window", "pause-node", "pause-pool", "pause-cluster", "reboot-brake"}));
  for (const Gate& gate : rows) {
    EXPECT_EQ(gate.reason, "") << gate.name;
    EXPECT_NE(gate.message, "") << gate.name;
    EXPECT_EQ(gate.look_again, std::nullopt) << gate.name;
  }
}

TEST(GateTest, AnOpenWindowSaysWhenItCloses) {
  const auto rows = gates({.now = utc("2026-11-21T01:00"), .schedule = schedule({"00:00+4h"}), .needed = 3h});
  EXPECT_EQ(rows.front(), (Gate{.name = "window",
                                .open = true,
                                .message = "inside the window: it closes Sat 2026-11-21 04:00 UTC",
                                .look_again = utc("2026-11-21T04:00")}));
}

TEST(GateTest, OutsideTheWindow) {
  const auto rows = gates({.now = utc("2026-11-21T05:00"), .schedule = schedule({"00:00+4h"}), .needed = 3h});
  EXPECT_EQ(rows.front(), (Gate{.name = "window",
                                .open = false,
                                .reason = "OutsideWindow",
                                .message = "outside the window: next one opens Sun 2026-11-22 00:00 UTC",
                                .look_again = utc("2026-11-22T00:00")}));
}

TEST(GateTest, WhatCannotEndInTimeDoesNotBegin) {
  const auto rows = gates({.now = utc("2026-11-21T01:01"), .schedule = schedule({"00:00+4h"}), .needed = 3h});
  EXPECT_EQ(rows.front(),
            (Gate{.name = "window",
                  .open = false,
                  .reason = "WindowTooShort",
                  .message = "the window closes Sat 2026-11-21 04:00 UTC, and an update of this node takes "
                             "about 3h00m; it begins Sun 2026-11-22 00:00 UTC",
                  .look_again = utc("2026-11-22T00:00")}));
  const auto never = gates({.now = utc("2026-11-21T01:01"), .schedule = schedule({"00:00+4h"}), .needed = 5h});
  EXPECT_EQ(never.front().reason, "WindowTooShort");
  EXPECT_EQ(never.front().look_again, std::nullopt);
}

TEST(GateTest, Pauses) {
  const WallTime now = utc("2026-11-21T05:00");
  const Pause over{"old", now};
  const Pause timed{"new storage", now + 1h};
  const Pause endless{"freeze", {}};
  EXPECT_EQ(names(gates({.now = now, .node_pause = over, .pool_pause = over, .cluster_pause = over}), false), Names{});
  const auto rows =
      gates({.now = now, .pool = "web", .node_pause = over, .pool_pause = timed, .cluster_pause = endless});
  EXPECT_EQ(names(rows, false), (Names{"pause-pool", "pause-cluster"}));
  EXPECT_EQ(rows[0], (Gate{.name = "pause-pool",
                           .open = false,
                           .reason = "Paused",
                           .message = "pool web is paused until 2026-11-21T06:00:00Z: new storage",
                           .look_again = now + 1h}));
  EXPECT_EQ(
      rows[1],
      (Gate{.name = "pause-cluster", .open = false, .reason = "Paused", .message = "the cluster is paused: freeze"}));
}

TEST(GateTest, ClosedOnesFirstInTheirOrder) {
  const WallTime now = utc("2026-11-21T05:00");
  const auto rows = gates({.now = now,
                           .schedule = schedule({"00:00+4h"}),
                           .node_pause = Pause{"new storage"},
                           .past = {{.at = now - 1h, .reasons = {"libc6"}}},
                           .wanted = {.need = Need::yes, .reasons = {"libc6"}}});
  EXPECT_EQ(names(rows, false), (Names{"window", "pause-node", "reboot-brake"}));
  EXPECT_EQ(names(rows, true), (Names{"pause-pool", "pause-cluster"}));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_FALSE(rows[2].open) << "closed ones stand first";
  EXPECT_EQ(rows[2].reason, "RebootLoop");
}

}  // namespace
}  // namespace haulout::agent
