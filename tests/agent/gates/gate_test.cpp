// Tests single gates: when each is open or closed, and with which reason and message. 2026-11-21 is a Saturday.
#include "agent/gates/gate.hpp"

#include <gmock/gmock.h>

#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Verdict = Gate::Verdict;
using History = std::vector<std::chrono::seconds>;

Gate window(const std::string& now, const std::vector<std::string>& windows, const History& took = {}) {
  return window_gate(schedule(windows), took, true, utc(now));
}
Gate window_before_turn(const std::string& now, const std::vector<std::string>& windows, const History& took = {}) {
  return window_gate(schedule(windows), took, false, utc(now));
}

TEST(GateTest, WithoutWindowsItIsAlwaysOpen) {
  const Gate gate = window("2026-11-21T01:00", {});
  EXPECT_EQ(gate, (Gate{.name = "window", .message = "no window is set: always open"}));
}

TEST(GateTest, AnOpenWindowSaysWhenItCloses) {
  EXPECT_EQ(window("2026-11-21T01:00", {"00:00+4h"}, {9000s}),
            (Gate{.name = "window",
                  .message = "inside the window: the window closes Sat 2026-11-21 04:00 UTC",
                  .look_again = utc("2026-11-21T04:00")}));
}

TEST(GateTest, OutsideTheWindow) {
  EXPECT_EQ(window("2026-11-21T05:00", {"00:00+4h"}),
            (Gate{.name = "window",
                  .verdict = Verdict::closed,
                  .reason = "OutsideWindow",
                  .message = "outside the window: updates may begin again Sun 2026-11-22 00:00 UTC",
                  .look_again = utc("2026-11-22T00:00"),
                  .opens = utc("2026-11-22T00:00")}));
}

TEST(GateTest, WhatCannotEndInTimeDoesNotBegin) {
  EXPECT_EQ(window("2026-11-21T01:01", {"00:00+4h"}, {60s, 9000s}),  // 9000 s and a fifth are three hours
            (Gate{.name = "window",
                  .verdict = Verdict::closed,
                  .reason = "WindowTooShort",
                  .message = "the window closes Sat 2026-11-21 04:00 UTC, too early for an update of this node, "
                             "which takes about 3h00m; the update may begin Sun 2026-11-22 00:00 UTC",
                  .look_again = utc("2026-11-22T00:00"),
                  .opens = utc("2026-11-22T00:00")}));
  EXPECT_EQ(window("2026-11-21T01:00", {"00:00+4h"}, {60s, 9000s}).verdict, Verdict::open);
}

// Taking a slot takes some seconds. So before a slot is taken, there must be more time than the update needs; with the
// slot, the update may fit the window exactly.
TEST(GateTest, BeforeTheTurnThereHasToBeTimeForItAsWell) {
  EXPECT_EQ(window("2026-11-21T01:00", {"00:00+4h"}, {9000s}).verdict, Verdict::open);
  EXPECT_EQ(window_before_turn("2026-11-21T01:00", {"00:00+4h"}, {9000s}).reason, "WindowTooShort");
  EXPECT_EQ(window_before_turn("2026-11-21T00:59", {"00:00+4h"}, {9000s}).verdict, Verdict::open);
  const Gate never = window_before_turn("2026-11-21T00:00", {"00:00+3h"}, {9000s});
  EXPECT_EQ(never.reason, "WindowTooShort");
  EXPECT_EQ(never.look_again, std::nullopt) << "it must not promise what it cannot keep";
}

TEST(GateTest, WithoutAHistoryHalfAnHourHasToFit) {
  EXPECT_EQ(window("2026-11-21T03:31", {"00:00+4h"}).reason, "WindowTooShort");
  EXPECT_EQ(window("2026-11-21T03:30", {"00:00+4h"}).verdict, Verdict::open);
}

// Without a history, an update is assumed to take half an hour. If it had to fit into a window of ten minutes, no
// update would ever begin, and the node would never have a history.
TEST(GateTest, TheFirstUpdateBeginsInAWindowThatIsShorterThanTheGuess) {
  EXPECT_EQ(window("2026-11-21T00:00", {"00:00+10m"}).verdict, Verdict::open);
}

// One drain that was blocked for a day must not prevent all later updates of the node.
TEST(GateTest, AnUpdateLongerThanEveryWindowCountsAsAnOrdinaryOne) {
  EXPECT_EQ(window("2026-11-21T00:00", {"00:00+4h"}, {600s, 90000s, 600s}).verdict, Verdict::open);
  EXPECT_EQ(window("2026-11-21T03:50", {"00:00+4h"}, {600s, 90000s, 600s}).reason, "WindowTooShort");
}

TEST(GateTest, WhatFitsNowhereSaysSo) {
  const Gate gate = window("2026-11-21T00:00", {"00:00+4h"}, {15000s, 16000s});
  EXPECT_EQ(gate.reason, "WindowTooShort");
  EXPECT_THAT(gate.message, HasSubstr("configure longer windows or shorter blackouts"));
  EXPECT_EQ(gate.look_again, std::nullopt);
}

TEST(GateTest, Pauses) {
  const WallTime now = utc("2026-11-21T05:00");
  constexpr auto gives_up = Gate::Effect::gives_up;
  EXPECT_EQ(pause_gate("pause-node", "this node", {}, now),
            (Gate{.name = "pause-node", .message = "this node is not paused", .effect = gives_up}));
  EXPECT_EQ(pause_gate("pause-node", "this node", Pause{"old", now}, now),
            (Gate{.name = "pause-node", .message = "the pause of this node has ended", .effect = gives_up}));
  EXPECT_EQ(pause_gate("pause-pool", "pool web", Pause{"new storage", now + 1h}, now),
            (Gate{.name = "pause-pool",
                  .verdict = Verdict::closed,
                  .reason = "Paused",
                  .message = "pool web is paused until 2026-11-21T06:00:00Z: new storage",
                  .look_again = now + 1h,
                  .effect = gives_up,
                  .opens = now + 1h}));
  EXPECT_EQ(pause_gate("pause-cluster", "the cluster", Pause{"freeze", {}}, now),
            (Gate{.name = "pause-cluster",
                  .verdict = Verdict::closed,
                  .reason = "Paused",
                  .message = "the cluster is paused: freeze",
                  .effect = gives_up}));
}

// A time that is told to others must be known: it is that of the last gate, and polling for an answer is none.
TEST(GateTest, AllGatesAreOpenNotBeforeTheLastKnownTime) {
  const WallTime now = utc("2026-11-21T05:00");
  const Gate closed = window("2026-11-21T05:00", {"00:00+4h"});
  const Gate open = window("2026-11-21T01:00", {"00:00+4h"});
  const Gate paused = pause_gate("pause-pool", "pool web", Pause{"new storage", now + 1h}, now);
  const Gate endless = pause_gate("pause-pool", "pool web", Pause{"new storage", {}}, now);
  const Gate polled{.name = "fleet", .verdict = Verdict::closed, .look_again = now + 24h};
  const struct {
    std::vector<Gate> gates;
    std::optional<WallTime> opens;
  } table[] = {
      {{}, {}},
      {{open}, {}},
      {{closed}, utc("2026-11-22T00:00")},
      {{paused}, now + 1h},
      {{closed, paused}, utc("2026-11-22T00:00")},
      {{paused, closed}, utc("2026-11-22T00:00")},
      {{endless}, {}},
      {{endless, closed}, utc("2026-11-22T00:00")},
      {{polled}, {}},
      {{polled, paused}, now + 1h},
  };
  for (const auto& row : table) EXPECT_EQ(GateAnswer{row.gates}.opens(), row.opens) << row.gates.size();
}

TEST(GateTest, TheBrakeIsForPersons) {
  const WallTime now = utc("2026-11-21T05:00");
  const std::vector<PastReboot> past = {{.at = now - 1h, .reasons = {"libc6"}}};
  const Pending wanted{.need = Need::yes, .reasons = {"libc6"}};
  const Gate closed = brake_gate(past, wanted, false, now, 3);
  EXPECT_EQ(closed.verdict, Verdict::closed);
  EXPECT_EQ(closed.reason, "RebootLoop");
  EXPECT_EQ(closed.effect, Gate::Effect::degrades);
  const Gate requested = brake_gate(past, wanted, true, now, 3);
  EXPECT_EQ(requested.verdict, Verdict::open);
  EXPECT_THAT(requested.message, HasSubstr("requested"));
  EXPECT_EQ(brake_gate({}, wanted, false, now, 3).verdict, Verdict::open);
}

TEST(GateTest, AnAnswerIsOpenWhenNoGateIsClosed) {
  const WallTime now = utc("2026-11-21T05:00");
  GateAnswer answer{
      {{.name = "a"}, {.name = "b", .verdict = Verdict::off}, {.name = "c", .verdict = Verdict::not_asked}}};
  EXPECT_TRUE(answer.open());
  EXPECT_EQ(answer.reason() + answer.message(), "");
  EXPECT_EQ(answer.look_again(), std::nullopt);
  answer.gates.push_back(
      {.name = "d", .verdict = Verdict::closed, .reason = "D", .message = "d is", .look_again = now + 2h});
  answer.gates.push_back({.name = "e",
                          .verdict = Verdict::closed,
                          .reason = "E",
                          .message = "e is",
                          .look_again = now + 1h,
                          .effect = Gate::Effect::degrades});
  answer.gates.push_back({.name = "f", .look_again = now, .effect = Gate::Effect::gives_up});
  EXPECT_FALSE(answer.open());
  EXPECT_EQ(answer.reason(), "D");
  EXPECT_EQ(answer.message(), "d is; e is");
  EXPECT_EQ(answer.look_again(), now + 1h);
  ASSERT_NE(answer.closed_with(Gate::Effect::degrades), nullptr);
  EXPECT_EQ(answer.closed_with(Gate::Effect::degrades)->name, "e");
  EXPECT_EQ(answer.closed_with(Gate::Effect::gives_up), nullptr) << "it is open";
  std::vector<std::string> names;
  for (const Gate& gate : closed_first(answer.gates)) names.push_back(gate.name);
  EXPECT_EQ(names, (std::vector<std::string>{"d", "e", "a", "b", "c", "f"}));
}

TEST(PinGateTest, OnlyTheVersionItselfMayBeInstalled) {
  struct Row {
    Pending wanted;
    bool closed;
    std::string waits;
  };
  const std::vector<Row> rows = {
      {{Need::yes, {}, "2.0"}, false, ""},
      {{Need::yes, {}, "2.0.1"}, true, "version 2.0.1 waits"},
      {{Need::yes, {"kernel"}, ""}, true, "an update without a version waits"},
      {{Need::no, {}, "3.0"}, false, ""},
      {{Need::unknown, {}, ""}, false, ""},
  };
  for (const Row& row : rows) {
    const Gate gate = pin_gate("2.0", row.wanted);
    EXPECT_EQ(gate.closed(), row.closed);
    EXPECT_EQ(gate.reason, row.closed ? "VersionPinned" : "");
    EXPECT_THAT(gate.message, ::testing::HasSubstr(row.waits));
    EXPECT_THAT(gate.message, ::testing::HasSubstr("2.0"));
    EXPECT_EQ(gate.effect, Gate::Effect::gives_up);
  }
}

}  // namespace
}  // namespace haulout::agent
