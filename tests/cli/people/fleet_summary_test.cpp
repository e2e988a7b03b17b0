// Tests, with tables, what people see of Nodes, Leases and the ConfigMap.
#include "cli/people/fleet_summary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/status_job.hpp"
#include "cli/people/views.hpp"
#include "tests/cli/people/samples.hpp"

namespace haulout::cli {
namespace {

using namespace samples;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Fleet fleet(const std::vector<k8s::Node>& nodes, FleetFacts facts = {}) {
  return fleet_of(nodes, std::move(facts), true, now);
}

TEST(NodeViewTest, ReadsWhatTheAgentWrote) {
  k8s::Node node = node_in("n1", agent::State::draining, "BlockedByBudget", "pod a/b\x1b[31m waits");
  remember(node, [](agent::Record& record) {
    record.from = "1.0";
    record.to = "1.1";
    record.verified_at = now - 48h;
  });
  node.os_image = "Debian 12";
  const NodeView view = node_view(node, {.turns = {turn_of(node, "web")}}, now);
  EXPECT_TRUE(view.agent);
  EXPECT_EQ(view.state, "draining");
  EXPECT_EQ(view.reason, "BlockedByBudget");
  EXPECT_EQ(view.reboot_required, "true");
  EXPECT_EQ(view.message, "pod a/b [31m waits") << "nothing that a terminal would obey";
  EXPECT_EQ(view.since, now - 12min);
  EXPECT_EQ(view.turn, "haulout-web-0");
  EXPECT_EQ(view.pool, "web");
  EXPECT_EQ(view.from + view.to, "1.01.1");
  EXPECT_EQ(view.last_update, now - 48h);
  EXPECT_FALSE(view.overdue);
}

// A person may have set the label before the node had an agent. The agent leaves it, and counts the node in the pool of
// its record.
TEST(NodeViewTest, ThePoolIsTheOneThatTheAgentCounts) {
  k8s::Node node = node_in("n1", agent::State::pending);
  node.labels["haulout.dev/pool"] = "none";
  EXPECT_EQ(node_view(node, {}, now).pool, "none") << "an agent with pool-label haulout.dev/pool records no pool";
  remember(node, [](agent::Record& record) { record.pool = "default"; });
  EXPECT_EQ(node_view(node, {}, now).pool, "default");
  node.labels.erase("haulout.dev/pool");
  EXPECT_EQ(node_view(node, {}, now).pool, "default");
}

TEST(NodeViewTest, ATurnOfANamesakeIsNotThisNodes) {
  k8s::Node node = node_in("n1", agent::State::waiting);
  k8s::Lease turn = turn_of(node);
  turn.holder = "n1/older";
  EXPECT_EQ(node_view(node, {.turns = {turn}}, now).turn, "");
}

TEST(NodeViewTest, WithoutAnAgent) {
  const NodeView view = node_view(bare("n1"), {}, now);
  EXPECT_FALSE(view.agent);
  EXPECT_EQ(state_text(view), "<none>");
  EXPECT_EQ(message_text(view, now), "no agent has reported on this node");
}

TEST(NodeViewTest, ARecordThatNobodyCanReadIsShownAsDegraded) {
  k8s::Node node = bare("n1");
  node.annotations = {{"haulout.dev/record", "nonsense"}};
  const NodeView view = node_view(node, {}, now);
  EXPECT_EQ(view.state, "degraded");
  EXPECT_FALSE(view.since);
}

TEST(NodeViewTest, StateShowsWhatKubectlWouldShow) {
  k8s::Node node = node_in("n1", agent::State::idle);
  node.ready = false;
  node.unschedulable = true;
  EXPECT_EQ(state_text(node_view(node, {}, now)), "idle,NotReady,SchedulingDisabled");
  node = node_in("n1", agent::State::draining);
  node.unschedulable = true;
  EXPECT_EQ(state_text(node_view(node, {}, now)), "draining") << "it is what draining means";
  NodeView back = node_view(node_in("n1", agent::State::uncordoning), {}, now);
  back.unschedulable = true;
  EXPECT_EQ(state_text(back), "uncordoning") << "it is what is being taken back";
  back.foreign_cordon = true;
  EXPECT_EQ(state_text(back), "uncordoning,SchedulingDisabled");
}

// A drain may take any time, so an agent regularly updates the heartbeat of its condition during an update. An agent
// counts as silent if the last heartbeat is more than 15 minutes old.
TEST(NodeViewTest, AnAgentInMaintenanceThatIsNotHeardOfIsSilent) {
  const struct {
    const char* what;
    const char* status;
    std::optional<Duration> heard;
    bool silent;
  } rows[] = {
      {"heard of just now", "True", 4min, false},
      {"late", "True", 14min, false},
      {"not for long", "True", 16min, true},
      {"no maintenance", "False", 24h, false},
      {"whoever wrote no time", "True", std::nullopt, false},
  };
  for (const auto& row : rows) {
    k8s::Node node = node_in("n1", agent::State::draining, "BlockedByBudget", "said before");
    for (const char* type : {"MaintenanceInProgress", "HauloutMaintenance"}) {
      node.conditions = {{type, row.status, "BlockedByBudget", {}, "haulout: said before"}};
      if (row.heard)
        node.conditions[0].last_heartbeat = now - std::chrono::duration_cast<WallTime::duration>(*row.heard);
      EXPECT_EQ(node_view(node, {}, now).overdue.has_value(), row.silent) << row.what << ", " << type;
    }
    node.conditions = {{"MaintenanceInProgress", row.status, "BlockedByBudget", now - 24h, "told by another program"}};
    EXPECT_FALSE(node_view(node, {}, now).overdue) << row.what << ", and another program says so";
  }
}

struct OverdueRow {
  const char* what;
  agent::State state;
  const char* reason;
  std::optional<Duration> deadline, not_before;  // how long ago these times were
  bool overdue;
};

TEST(NodeViewTest, OnlyATimeThatPassedMakesAnAgentSilent) {
  const OverdueRow rows[] = {
      {"rebooting, long past", agent::State::rebooting, "", 20min, std::nullopt, true},
      {"rebooting, just past", agent::State::rebooting, "", 4min, std::nullopt, false},
      {"soaking, not over", agent::State::soaking, "", -1min, std::nullopt, false},
      {"soaking, over", agent::State::soaking, "Soaking", 1h, std::nullopt, true},
      {"soaking, a taint", agent::State::soaking, "ConditionNotMet", 1h, std::nullopt, false},
      {"soaking, not Ready", agent::State::soaking, "NodeNotReady", 1h, std::nullopt, false},
      {"soaking, a hook", agent::State::soaking, "WaitingForHook", 1h, std::nullopt, false},
      {"verifying", agent::State::verifying, "", 1h, std::nullopt, true},
      {"verifying, a taint", agent::State::verifying, "ConditionNotMet", 1h, std::nullopt, true},
      {"verifying, a hook", agent::State::verifying, "WaitingForHook", 1h, std::nullopt, false},
      {"backing off", agent::State::pending, "BackingOff", std::nullopt, 1h, true},
      {"an old backoff, held by something else", agent::State::pending, "Paused", std::nullopt, 1h, false},
      {"idle says nothing for weeks", agent::State::idle, "", std::nullopt, std::nullopt, false},
      {"a drain may take for ever", agent::State::draining, "BlockedByBudget", std::nullopt, std::nullopt, false},
  };
  for (const OverdueRow& row : rows) {
    k8s::Node node = node_in("n1", row.state, row.reason, "said before");
    const auto ago = [](Duration d) { return now - std::chrono::duration_cast<std::chrono::microseconds>(d); };
    remember(node, [&](agent::Record& record) {
      if (row.deadline) record.deadline = ago(*row.deadline);
      if (row.not_before) record.not_before = ago(*row.not_before);
    });
    const NodeView view = node_view(node, {}, now);
    EXPECT_EQ(view.overdue.has_value(), row.overdue) << row.what;
    if (row.overdue)
      EXPECT_THAT(message_text(view, now), AllOf(HasSubstr("check that it runs"), HasSubstr("said before")))
          << row.what;
  }
}

TEST(NodeViewTest, PausesThatAreOverAreNone) {
  k8s::Node node = node_in("n1", agent::State::idle);
  node.annotations["haulout.dev/pause"] = "2026-11-21T11:59:59Z; disk";
  EXPECT_FALSE(node_view(node, {}, now).pause);
  node.annotations["haulout.dev/pause"] = "2026-11-21T12:30:00Z; disk";
  const NodeView view = node_view(node, {}, now);
  ASSERT_TRUE(view.pause);
  EXPECT_EQ(message_text(view, now), "paused until 2026-11-21T12:30:00Z: disk");
}

// The format follows duration.HumanDuration of k8s.io/apimachinery.
TEST(NodeViewTest, AgesAsKubectlWritesThem) {
  const std::pair<Duration, const char*> rows[] = {
      {-5s, "0s"},    {0s, "0s"},       {119s, "119s"}, {120s, "2m"},     {185s, "3m5s"},
      {10min, "10m"}, {179min, "179m"}, {3h, "3h"},     {187min, "3h7m"}, {8h + 9min, "8h"},
      {47h, "47h"},   {48h, "2d"},      {99h, "4d3h"},  {8 * 24h, "8d"},  {400 * 24h, "400d"},
  };
  for (const auto& [age, text] : rows)
    EXPECT_EQ(age_text(now - std::chrono::duration_cast<std::chrono::microseconds>(age), now), text);
}

TEST(NodeStateTest, UnderWayFromTheTurnToItsEnd) {
  std::vector<std::string> under_way;
  for (const agent::State state : agent::all_states)
    if (is_under_way(to_string(state))) under_way.emplace_back(to_string(state));
  EXPECT_THAT(under_way,
              ElementsAre("draining", "updating", "ready", "rebooting", "verifying", "uncordoning", "soaking"));
  EXPECT_FALSE(is_under_way("something newer"));
}

TEST(FleetSummaryTest, EveryStateIsCountedOnce) {
  std::vector<k8s::Node> nodes{bare("none")};
  for (const agent::State state : agent::all_states)
    nodes.push_back(node_in("n-" + std::string(to_string(state)), state));
  nodes.push_back(node_in("rolled-back", agent::State::idle));
  nodes.back().labels["haulout.dev/reboot-required"] = "true";
  nodes.push_back(node_in("newer", agent::State::idle));
  nodes.back().labels["haulout.dev/state"] = "dreaming";
  std::size_t all = 0;
  for (const Count& count : counts(fleet(nodes).nodes)) all += count.nodes;
  EXPECT_EQ(all, nodes.size());
  EXPECT_EQ(count_line(fleet(nodes).nodes),
            "15 nodes: 1 up to date, 1 blocked, 1 pending, 1 waiting, 1 draining, 1 updating, 1 ready, 1 rebooting, "
            "1 verifying, 1 uncordoning, 1 soaking, 1 degraded, 2 unknown, 1 without an agent");
}

TEST(FleetSummaryTest, AFleetThatIsWellHoldsNothing) {
  EXPECT_THAT(hold_lines(fleet({node_in("n1", agent::State::idle), bare("n2")}), now), IsEmpty());
  EXPECT_EQ(count_line(fleet({node_in("n1", agent::State::idle)}).nodes), "1 node: 1 up to date");
}

TEST(FleetSummaryTest, ADegradedHolderComesFirst) {
  const k8s::Node broken = node_in("n2", agent::State::degraded, "RebootOverdue", "it did not come back");
  const auto lines =
      hold_lines(fleet({node_in("n1", agent::State::waiting, "WaitingForSlot", "the slot is held by n2"), broken},
                       {.turns = {turn_of(broken)}}),
                 now);
  EXPECT_THAT(
      lines,
      ElementsAre("n2 is degraded (RebootOverdue) for 12m and keeps slot haulout-default-0: it did not come back"));
}

TEST(FleetSummaryTest, WhoHoldsTheTurnAndWhyIsSaidOnce) {
  const k8s::Node holder = node_in("n2", agent::State::draining, "BlockedByBudget", "pod shop/web-0 is blocked");
  const auto lines =
      hold_lines(fleet({node_in("n1", agent::State::waiting, "WaitingForSlot", "the slot is held by n2"), holder},
                       {.turns = {turn_of(holder)}}),
                 now);
  EXPECT_THAT(
      lines,
      ElementsAre("n2 holds slot haulout-default-0, draining (BlockedByBudget) for 12m: pod shop/web-0 is blocked"));
}

TEST(FleetSummaryTest, WhoHasJustTakenTheTurnDoesNotWaitForIt) {
  const k8s::Node taker = node_in("n2", agent::State::waiting, "WaitingForSlot", "the slot is held by n1");
  const auto lines = hold_lines(fleet({node_in("n1", agent::State::idle), taker}, {.turns = {turn_of(taker)}}), now);
  EXPECT_THAT(lines, ElementsAre("n2 has taken slot haulout-default-0 and is confirming it"));
}

TEST(FleetSummaryTest, WaitersAreGroupedByReason) {
  const auto lines = hold_lines(fleet({node_in("n1", agent::State::pending, "OutsideWindow", "opens on Sunday"),
                                       node_in("n2", agent::State::pending, "OutsideWindow", "opens on Sunday"),
                                       node_in("n3", agent::State::waiting, "WaitingForSlot", "n9 is NotReady")}),
                                now);
  EXPECT_THAT(lines, ElementsAre("2 nodes wait (OutsideWindow), for example n1: opens on Sunday",
                                 "n3 waits (WaitingForSlot): n9 is NotReady"));
}

// The wave of a roll-out is that of a pool and a version, as the agents of the waiting nodes show it. It is told even
// if the holders of slots have lines of their own.
TEST(FleetSummaryTest, TheRollOutIsToldForEachPool) {
  const std::string why = "wave 1 of 2 of version 4230.2.0: 0 of 1 node has come back well, 1 is being updated (n9)";
  for (const std::string reason : {"WaitingForWave", "RollOutHalted", "WaitingForOrder"}) {
    std::vector<k8s::Node> nodes;
    for (const char* name : {"n1", "n2", "n3"}) {
      nodes.push_back(node_in(name, agent::State::waiting, reason, why));
      nodes.back().labels["haulout.dev/pool"] = name == std::string("n3") ? "db" : "web";
    }
    const k8s::Node holder = node_in("n9", agent::State::draining, "Evicting", "2 pods are left");
    nodes.push_back(holder);
    EXPECT_THAT(
        hold_lines(fleet(nodes, {.turns = {turn_of(holder)}}), now),
        ElementsAre("n9 holds slot haulout-default-0, draining (Evicting) for 12m: 2 pods are left",
                    "n3 waits (" + reason + "): " + why, "2 nodes wait (" + reason + "), for example n1: " + why));
  }
}

TEST(FleetSummaryTest, PausesInForceAndWhatCannotBeSeen) {
  FleetFacts facts;
  facts.entries = {{"pause", R"({"reason":"incident"})"},
                   {"pause.web", R"({"reason":"freeze","until":"2026-11-21T13:00:00Z"})"},
                   {"pause.old", R"({"reason":"x","until":"2026-11-21T11:00:00Z"})"},
                   {"paused", "{}"}};
  facts.turns_problem = "forbidden";
  const auto lines = hold_lines(fleet({node_in("n1", agent::State::idle)}, facts), now);
  EXPECT_THAT(lines,
              ElementsAre("the cluster is paused: incident", "pool web is paused until 2026-11-21T13:00:00Z: freeze",
                          "holders of slots cannot be read: forbidden"));
}

TEST(FleetSummaryTest, ATurnWithoutItsNodeIsToldOnlyOfTheWholeCluster) {
  const FleetFacts facts{.turns = {turn_of(node_in("gone", agent::State::draining))}};
  EXPECT_THAT(hold_lines(fleet({node_in("n1", agent::State::idle)}, facts), now),
              ElementsAre(HasSubstr("held by gone/uid-gone")));
  EXPECT_THAT(hold_lines(fleet_of({node_in("n1", agent::State::idle)}, facts, false, now), now), IsEmpty());
}

// A machine outside of the cluster may hold slots of two pools, and has no agent to check.
TEST(FleetSummaryTest, AMachineOutsideOfTheClusterHoldsItsSlot) {
  k8s::Lease slot = turn_of(node_in("n1", agent::State::draining));
  slot.holder = agent::outside_machine("m1").holder();
  k8s::Lease other = slot;
  other.name = "haulout-web-0";
  EXPECT_THAT(hold_lines(fleet({node_in("n1", agent::State::idle)}, {.turns = {slot, other}}), now),
              ElementsAre("slot haulout-default-0 is held by outside machine m1, which is no node of this cluster; if "
                          "this machine is gone for good, delete Lease haulout-default-0",
                          HasSubstr("haulout-web-0")));
}

// Otherwise people would be told to delete the slot of a node that is being drained.
TEST(FleetSummaryTest, ANodeThatAsksTheFleetLockServerIsNoStranger) {
  k8s::Node node = node_in("n1", agent::State::draining);
  remember(node, [](agent::Record& record) { record.slot = "fleetlock/default@m1"; });
  k8s::Lease slot = turn_of(node);
  slot.holder = agent::outside_machine("m1").holder();
  EXPECT_THAT(hold_lines(fleet({node}, {.turns = {slot}}), now), IsEmpty());
  slot.holder = agent::outside_machine("m2").holder();
  EXPECT_THAT(hold_lines(fleet({node}, {.turns = {slot}}), now), ElementsAre(HasSubstr("outside machine m2")));
}

// A node needs one Lease of its pool and, if zones are limited, too, one of its zone. If it holds a second one of its
// pool, which was created by hand or with a stolen token, the command names the node and the Leases.
TEST(FleetSummaryTest, ANodeWithSeveralTurnsIsNamed) {
  const k8s::Node node = node_in("n1", agent::State::draining);
  k8s::Lease second = turn_of(node);
  second.name = "haulout-default-1";
  k8s::Lease zone = turn_of(node);
  zone.name = "haulout-default.a-0";
  EXPECT_THAT(hold_lines(fleet({node}, {.turns = {turn_of(node), zone}}), now),
              Not(Contains(AnyOf(HasSubstr("slots, but"), HasSubstr("no node with this name")))))
      << "one of its zone, too";
  EXPECT_THAT(hold_lines(fleet({node}, {.turns = {turn_of(node), second, zone}}), now),
              Contains(StartsWith("n1 holds 2 slots, but needs one: haulout-default-0, haulout-default-1;")));
}

TEST(StatusTableTest, LooksAsKubectlsTables) {
  k8s::Node asked = node_in("worker-10", agent::State::idle);
  asked.annotations["haulout.dev/request"] = "reboot";
  const auto lines = status_text(
      fleet({node_in("n1", agent::State::draining, "BlockedByBudget", "pod shop/web-0 is blocked"), bare("n2"), asked}),
      {}, now);
  EXPECT_THAT(lines,
              ElementsAre("NAME        STATE      REASON            REBOOT      SINCE    MESSAGE",
                          "n1          draining   BlockedByBudget   true        12m      pod shop/web-0 is blocked",
                          "n2          <none>     <none>            <none>      <none>   no agent has reported on "
                          "this node",
                          "worker-10   idle       <none>            requested   12m", "",
                          "3 nodes: 1 up to date, 1 draining, 1 without an agent"));
}

TEST(StatusTableTest, WideSaysWhereAndWhat) {
  k8s::Node node = node_in("n1", agent::State::draining);
  remember(node, [](agent::Record& record) {
    record.from = "1.0";
    record.to = "1.1";
    record.verified_at = now - 72h;
    record.attempts = {{now - 72h, "Updated", ""}, {now - 9h, "DrainBlocked", "pod shop/db-0"}};
  });
  node.os_image = "Debian GNU/Linux 12";
  const auto lines = status_text(fleet({node}, {.turns = {turn_of(node, "web")}}), {.wide = true}, now);
  EXPECT_THAT(
      lines[0],
      HasSubstr("POOL   SLOT            VERSIONS   OS-IMAGE              LAST-UPDATE   LAST-ATTEMPT        MESSAGE"));
  EXPECT_THAT(lines[1],
              HasSubstr("web    haulout-web-0   1.0->1.1   Debian GNU/Linux 12   3d            DrainBlocked (9h)"));
}

TEST(StatusTableTest, ColoursNothingButTheState) {
  const Fleet one = fleet({node_in("n1", agent::State::degraded, "RebootLoop", "m")});
  EXPECT_THAT(status_text(one, {.color = true}, now)[1], StartsWith("n1     \x1b[31mdegraded\x1b[0m   RebootLoop"));
  for (const std::string& line : status_text(one, {}, now)) EXPECT_THAT(line, Not(HasSubstr("\x1b")));
}

TEST(StatusTableTest, ANarrowRowIsColouredWholeOrNotAtAll) {
  const Fleet one = fleet({node_in("n1", agent::State::degraded, "RebootLoop", "m")});
  StatusTable table({.color = true});
  table.fit(one.nodes, now);
  for (std::size_t width = 2; width < 80; ++width) {
    std::string row = table.row(one.nodes.front(), now, width);
    const std::string state = "\x1b[31mdegraded\x1b[0m";
    if (const auto at = row.find(state); at != std::string::npos) row.replace(at, state.size(), "degraded");
    EXPECT_THAT(row, Not(HasSubstr("\x1b"))) << width;
    EXPECT_LE(columns(row), width);
  }
}

TEST(StatusTableTest, ColumnsOfARoomyTerminalStayWhereTheyAre) {
  k8s::Node down = node_in("n1", agent::State::rebooting, "BlockedByBudget", "m");
  down.ready = false;
  const auto header = [](const k8s::Node& node, std::size_t width) {
    return status_block(fleet({node}), "", {}, {width, 24, true, false}, now).front();
  };
  EXPECT_EQ(header(node_in("n1", agent::State::idle), 100), header(down, 100));
  EXPECT_EQ(header(node_in("n1", agent::State::idle), 80), "NAME   STATE   REASON   REBOOT   SINCE   MESSAGE");
}

TEST(StatusTableTest, ABlockNeverLeavesTheTerminal) {
  std::vector<k8s::Node> nodes;
  for (int i = 0; i < 30; ++i) nodes.push_back(node_in(fmt::format("n{:02}", i), agent::State::idle));
  nodes[25] = node_in("n25", agent::State::degraded, "RebootOverdue", std::string(300, 'x'));
  const Fleet all = fleet(nodes);
  for (std::size_t height = 1; height < 45; ++height) {
    const Terminal terminal{60, height, true, true};
    const auto lines = status_block(all, "refused", {.color = true}, terminal, now);
    EXPECT_LT(lines.size(), std::max<std::size_t>(height, 1)) << height;
    for (const std::string& line : lines) {
      std::string bare_line = line;
      for (const char* code : {"\x1b[31m", "\x1b[32m", "\x1b[0m"})
        if (const auto at = bare_line.find(code); at != std::string::npos) bare_line.erase(at, std::strlen(code));
      EXPECT_LT(columns(bare_line), 60u);
    }
    if (height < 8) continue;
    EXPECT_THAT(lines, Contains(HasSubstr("n25"))) << "what is wrong is shown before what is well";
    EXPECT_THAT(lines, Contains(HasSubstr("the Nodes cannot be watched")));
    if (height < 30) EXPECT_THAT(lines, Contains(StartsWith("and ")));
  }
}

}  // namespace
}  // namespace haulout::cli
