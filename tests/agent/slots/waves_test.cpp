// The waves of a roll-out: which nodes count as nodes that have come back well, and how many others may follow.
#include "agent/slots/waves.hpp"

#include <gmock/gmock.h>

#include "agent/node/node_status.hpp"
#include "agent/slots/slot_rules.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* version = "4230.2.0";
const OwnNode me{"me", "me-uid"};
const WallTime now{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};

k8s::Node node_of(const std::string& name, const Record& record) {
  k8s::Node node;
  node.name = name;
  node.uid = name + "-uid";
  node.ready = true;
  node.labels[std::string(state_label)] = to_string(record.state);
  if (!record.cause.empty()) node.labels[std::string(reason_label)] = record.cause;
  node.annotations[std::string(record_annotation)] = encode_record(record);
  return node;
}
Record updated(State state, std::string to = version) {
  Record record;
  record.state = state;
  record.updated_to = std::move(to);
  return record;
}
k8s::Lease slot(std::size_t index, const std::string& name) {
  return slot_lease("haulout", {"default"}, index, {name, name + "-uid"}, WallTime{});
}

struct Waves : ::testing::Test {
  // A pool whose waves have these sizes, of ten nodes. `well` of them have come back well.
  GroupView pool(std::vector<std::size_t> waves, std::size_t well, std::vector<k8s::Lease> slots = {}) const {
    GroupView view{{"default"}, std::move(slots), 5};
    view.members = 10;
    view.roll_out = RollOut{version, std::move(waves)};
    for (std::size_t i = 0; i < well; ++i) view.roll_out->returned["well" + std::to_string(i)] = {};
    return view;
  }
  static RollOut::Return in(const k8s::Node& node) {
    const RollOut roll_out = roll_out_of(version, {{1}}, 3, {&node}, now);
    const auto found = roll_out.returned.find(node.name);
    return found == roll_out.returned.end() ? RollOut::Return{false, "no proof"} : found->second;
  }
};

TEST_F(Waves, HaveSizesInNodesOrShares) {
  const auto ramp = parse_ramp("1,2,5%,25%");
  ASSERT_TRUE(ramp);
  EXPECT_THAT(roll_out_of(version, *ramp, 100, {}, now).waves, ::testing::ElementsAre(1, 2, 5, 25));
  EXPECT_THAT(roll_out_of(version, *ramp, 7, {}, now).waves, ::testing::ElementsAre(1, 2, 1, 1)) << "at least one node";
}

TEST_F(Waves, CountANodeOnlyByItsOwnRecordOfThisVersion) {
  for (const State state : {State::unknown, State::idle, State::pending, State::waiting})
    EXPECT_EQ(in(node_of("n", updated(state))), RollOut::Return{}) << to_string(state);
  EXPECT_EQ(in(node_of("n", updated(State::idle, "4230.1.0"))).why, "no proof");
  EXPECT_EQ(in(node_of("n", updated(State::idle, ""))).why, "no proof") << "added with the version, or an older agent";
  Record failed = updated(State::idle, "");
  failed.reboots.push_back({.target = version, .cleared = true});
  failed.to = version;
  EXPECT_EQ(in(node_of("n", failed)).why, "no proof") << "a reboot for a version is no proof that it runs well";
  k8s::Node bare;
  bare.name = "n";
  bare.ready = true;
  EXPECT_EQ(in(bare).why, "no proof");
}

TEST_F(Waves, DoNotCountANodeThatIsNotWell) {
  for (const State state : all_states) {
    const bool settled =
        state == State::unknown || state == State::idle || state == State::pending || state == State::waiting;
    EXPECT_EQ(in(node_of("n", updated(state))).well, settled) << to_string(state);
  }
  Record degraded = updated(State::degraded);
  degraded.cause = "HookFailed";
  EXPECT_EQ(in(node_of("n", degraded)), (RollOut::Return{false, "n is degraded (HookFailed)"}));
  k8s::Node down = node_of("n", updated(State::idle));
  down.ready = false;
  EXPECT_EQ(in(down), (RollOut::Return{false, "n is not Ready"}));
}

// A node that has failed keeps its place without a slot, too, until it is verified or its record is removed.
TEST_F(Waves, CountANodeThatHasFailedUntilItHasRunWell) {
  Record failed = updated(State::pending, "");
  failed.failed_to = version;
  const RollOut::Return kept{false, "n has failed with this version, and has not run well with it since"};
  for (const State state : {State::unknown, State::idle, State::pending, State::waiting}) {
    failed.state = state;
    EXPECT_EQ(in(node_of("n", failed)), kept) << to_string(state);
  }
  failed.failed_to = "4230.1.0";
  EXPECT_EQ(in(node_of("n", failed)).why, "no proof") << "it has failed with another version";
  GroupView view = pool({1, 2}, 1);
  view.roll_out->returned["n"] = kept;
  EXPECT_FALSE(refused_by_wave(view, me)) << "there is another place";
  view.slots.push_back(slot(0, "a"));
  EXPECT_THAT(refused_by_wave(view, me).value_or(""),
              HasSubstr("1 of 3 nodes have come back well, 1 is being updated (a), n has failed with this version"));
  EXPECT_FALSE(refused_by_wave(view, {"n", "n-uid"})) << "the node itself may try again";
}

// If a machine never boots again, no agent is left to say so.
TEST_F(Waves, NameAHolderThatIsDown) {
  const auto seen = [](State state, std::optional<WallTime> deadline, bool ready = false) {
    Record record;
    record.state = state;
    record.since = now - 30min;
    record.deadline = deadline;
    k8s::Node node = node_of("n", record);
    node.ready = ready;
    const RollOut roll_out = roll_out_of(version, {{1}}, 3, {&node}, now);
    const auto found = roll_out.down.find("n");
    return found == roll_out.down.end() ? std::string() : found->second;
  };
  for (const State state : {State::updating, State::rebooting, State::verifying}) {
    EXPECT_EQ(seen(state, now), "") << "it may be about to come back: " << to_string(state);
    EXPECT_EQ(seen(state, now - 1s),
              "n is not Ready (" + std::string(to_string(state)) + " since 2025-12-31 23:30 UTC)");
    EXPECT_EQ(seen(state, now - 1s, true), "");
  }
  for (const State state : {State::draining, State::ready, State::uncordoning, State::soaking})
    EXPECT_EQ(seen(state, now + 1h),
              "n is not Ready (" + std::string(to_string(state)) + " since 2025-12-31 23:30 UTC)");
  GroupView view = pool({1}, 0, {slot(0, "n3")});
  view.roll_out->down["n3"] = "n3 is not Ready (rebooting since 2025-12-31 23:30 UTC)";
  EXPECT_EQ(
      refused_by_wave(view, me).value_or(""),
      "wave 1 of 1 of version 4230.2.0: 0 of 1 node has come back well, n3 is not Ready (rebooting since 2025-12-31 "
      "23:30 UTC): the roll-out waits until it is well; if a machine is lost, delete its Node");
  view.degraded["n3"] = "RolledBack";
  EXPECT_THAT(refused_by_wave(view, me).value_or(""), HasSubstr("n3 is degraded (RolledBack): the roll-out waits"));
}

// The slot of a node counts for each version until it cannot lead to that version any more.
TEST_F(Waves, KnowWhichSlotsAreForAnotherVersion) {
  const auto elsewhere = [](Record record) {
    const k8s::Node node = node_of("n", record);
    return !roll_out_of(version, {{1}}, 3, {&node}, now).elsewhere.empty();
  };
  Record record;
  record.slot = "lease/haulout/haulout-default-0";
  record.slot_version = record.to = record.updated_to = "4230.1.0";
  for (const State state : all_states) {
    record.state = state;
    const bool over = state == State::uncordoning || state == State::soaking || state == State::degraded;
    EXPECT_EQ(elsewhere(record), over) << to_string(state);
  }
  record.state = State::degraded;
  record.to.clear();
  EXPECT_TRUE(elsewhere(record)) << "the installation failed";
  record.to = version;
  EXPECT_TRUE(elsewhere(record)) << "so did that of another image than the one that was in place before";
  record.to.clear();
  record.slot_version = version;
  EXPECT_FALSE(elsewhere(record));
  record.slot_version.clear();
  EXPECT_FALSE(elsewhere(record)) << "for an unknown version";
  record.state = State::soaking;
  record.updated_to.clear();
  EXPECT_FALSE(elsewhere(record)) << "the version that runs could not be read";
  record.updated_to = version;
  EXPECT_FALSE(elsewhere(record));
  record.state = State::degraded;
  record.to = "4230.1.0";
  record.slot.clear();
  EXPECT_FALSE(elsewhere(record)) << "the slot is another one";
}

TEST_F(Waves, BeginWhenTheOneBeforeHasComeBackWell) {
  struct Row {
    std::size_t well;
    std::vector<k8s::Lease> slots;
    bool goes;
    const char* why;
  };
  const std::vector<Row> rows = {
      {0, {}, true, "the first of wave 1"},
      {0,
       {slot(0, "a")},
       false,
       "wave 1 of 3 of version 4230.2.0: 0 of 1 node has come back well, 1 is being updated (a)"},
      {1, {}, true, "wave 2"},
      {1, {slot(0, "a")}, true, "wave 2 has two nodes"},
      {1,
       {slot(0, "a"), slot(1, "b")},
       false,
       "wave 2 of 3 of version 4230.2.0: 1 of 3 nodes have come back well, 2 are being updated (a, b)"},
      {2,
       {slot(0, "a")},
       false,
       "wave 2 of 3 of version 4230.2.0: 2 of 3 nodes have come back well, 1 is being updated (a)"},
      {3, {slot(0, "a"), slot(1, "b")}, true, "wave 3"},
      {7, {slot(0, "a"), slot(1, "b"), slot(2, "c"), slot(3, "d")}, true, "after the last wave"},
  };
  for (const Row& row : rows) {
    const GroupView view = pool({1, 2, 4}, row.well, row.slots);
    const SlotChoice choice = choose_slot(view, me);
    EXPECT_EQ(choice.take.has_value(), row.goes) << row.why;
    EXPECT_EQ(choice.why, row.goes ? "" : row.why);
    EXPECT_EQ(refused_by_wave(view, me).value_or(""), row.goes ? "" : row.why);
  }
}

// P6: the smaller number wins.
TEST_F(Waves, DoNotReplaceMaxUnavailable) {
  GroupView view = pool({1, 4}, 1, {slot(0, "a")});
  view.limit = 1;
  EXPECT_EQ(choose_slot(view, me).take, std::nullopt);
  EXPECT_THAT(choose_slot(view, me).why, HasSubstr("at most 1 node may be unavailable"));
  view.limit = 2;
  EXPECT_NE(choose_slot(view, me).take, std::nullopt);
  view.out.push_back({"broken", "NotReady"});
  EXPECT_EQ(choose_slot(view, me).take, std::nullopt);
}

// A node that fails keeps its slot, so its wave never ends.
TEST_F(Waves, HaltAtADegradedNode) {
  GroupView view = pool({1, 2, 4}, 2, {slot(0, "n7")});
  view.degraded["n7"] = "RolledBack";
  EXPECT_EQ(choose_slot(view, me).why,
            "wave 2 of 3 of version 4230.2.0: 2 of 3 nodes have come back well, n7 is degraded (RolledBack): the "
            "roll-out waits until it is well");
  view.slots.clear();
  view.roll_out->returned["n7"] = {false, "n7 is degraded (HookFailed)"};
  EXPECT_THAT(choose_slot(view, me).why, HasSubstr("2 of 3 nodes have come back well, n7 is degraded (HookFailed)"));
  EXPECT_FALSE(present_wave(view, "me").soon_over);
  view.roll_out->returned["n7"] = {false, ""};
  EXPECT_THAT(choose_slot(view, me).why, HasSubstr("1 is being updated (n7)"));
  EXPECT_TRUE(present_wave(view, "me").soon_over);
}

// --halt-after: fewer failed nodes keep their places, but hold no wave up; so many halt the roll-out, also after the
// last wave and without waves.
TEST_F(Waves, HaltWhenSoManyNodesHaveFailed) {
  struct Row {
    std::vector<std::size_t> waves;
    std::size_t halt_after, well;
    std::vector<std::string> failed;  // without a slot
    std::vector<k8s::Lease> slots;
    std::string why;
  };
  const std::string repair = "; repair it and request its reboot, or withdraw the version";
  const std::vector<Row> rows = {
      {{1, 2}, 2, 0, {"f1"}, {}, ""},
      {{1, 2}, 2, 0, {"f1"}, {slot(0, "a")}, ""},
      {{1, 2},
       2,
       0,
       {"f1"},
       {slot(0, "a"), slot(1, "b")},
       "wave 2 of 2 of version 4230.2.0: 0 of 3 nodes have come back well, 2 are being updated (a, b), f1 has failed: "
       "the roll-out halts at 2 failed nodes"},
      {{1, 2}, 2, 2, {"f1"}, {slot(0, "a"), slot(1, "b")}, ""},
      {{1, 2},
       2,
       0,
       {"f1", "f2"},
       {},
       "the roll-out of version 4230.2.0 is halted, because 2 nodes have failed with it or are not well (halt-after "
       "2): f1 has failed, "
       "f2 has failed; repair them and request their reboot, or withdraw the version"},
      {{1},
       1,
       9,
       {"f1"},
       {},
       "the roll-out of version 4230.2.0 is halted, because 1 node has failed with it or is not well (halt-after "
       "1): f1 has failed" +
           repair},
      {{}, 1, 0, {}, {slot(0, "a"), slot(1, "b")}, ""},
      {{},
       1,
       0,
       {"f1"},
       {},
       "the roll-out of version 4230.2.0 is halted, because 1 node has failed with it or is not well (halt-after "
       "1): f1 has failed" +
           repair},
      {{}, 2, 0, {"f1"}, {}, ""},
      {{1}, 0, 1, {"f1", "f2"}, {}, ""},
  };
  for (const Row& row : rows) {
    GroupView view = pool(row.waves, row.well, row.slots);
    view.roll_out->halt_after = row.halt_after;
    for (const std::string& name : row.failed) view.roll_out->returned[name] = {false, name + " has failed"};
    EXPECT_EQ(refused_by_wave(view, me).value_or(""), row.why);
    EXPECT_EQ(choose_slot(view, me).take.has_value(), row.why.empty()) << row.why;
    EXPECT_EQ(present_wave(view, "me").halted, row.why.find("is halted") != std::string::npos);
  }
}

// A failed node that holds a slot counts while it is degraded, and while it tries again; it may try again itself.
TEST_F(Waves, AHaltLastsWhileAFailedNodeTriesAgain) {
  GroupView view = pool({}, 3, {slot(0, "f1")});
  view.roll_out->halt_after = 1;
  view.degraded["f1"] = "RolledBack";
  EXPECT_THAT(refused_by_wave(view, me).value_or(""), HasSubstr("f1 is degraded (RolledBack); repair it"));
  view.degraded.clear();
  EXPECT_FALSE(refused_by_wave(view, me)) << "it is being updated, and has not failed";
  view.roll_out->returned["f1"] = {false, "f1 has failed with this version"};
  EXPECT_THAT(refused_by_wave(view, me).value_or(""), HasSubstr("f1 has failed with this version; repair it"));
  view.roll_out->returned["f2"] = {false, "f2 has failed with this version"};
  EXPECT_FALSE(refused_by_wave(view, {"f1", "f1-uid"}));
  EXPECT_FALSE(refused_by_wave(view, {"f2", "f2-uid"})) << "or nothing could end the halt";
  view.roll_out->down["f1"] = "f1 is not Ready (rebooting since 2025-12-31 23:30 UTC)";
  EXPECT_THAT(refused_by_wave(view, me).value_or(""), HasSubstr("; if a machine is lost, delete its Node"));
  view.roll_out->elsewhere.insert("f1");
  view.roll_out->returned.clear();
  EXPECT_FALSE(refused_by_wave(view, me)) << "it has failed with another version";
}

TEST_F(Waves, DoNotCountAHolderAsComeBack) {
  GroupView view = pool({2, 4}, 1, {slot(0, "well0")});
  EXPECT_TRUE(refused_by_wave(pool({1, 1}, 1, {slot(0, "well0")}), me));
  EXPECT_FALSE(refused_by_wave(view, me)) << "one of two is in the wave";
  view.slots.push_back(slot(1, "a"));
  EXPECT_TRUE(refused_by_wave(view, me));
}

TEST_F(Waves, DoNotCountTheSlotOfAnotherVersionOrTheirOwn) {
  GroupView view = pool({1, 2}, 0, {slot(0, "old")});
  EXPECT_TRUE(refused_by_wave(view, me));
  view.roll_out->elsewhere.insert("old");
  EXPECT_EQ(choose_slot(view, me).take, 1u) << "its name is taken all the same";
  view.slots.push_back(slot(1, "me"));
  EXPECT_FALSE(refused_by_wave(view, me)) << "the same answer with the slot";
  view.roll_out->returned["me"] = {};
  EXPECT_FALSE(refused_by_wave(view, me));
}

// Nobody knows for which node and version a Lease without a holder is.
TEST_F(Waves, CountASlotWithoutAHolder) {
  k8s::Lease lease = slot(0, "a");
  lease.holder.clear();
  EXPECT_THAT(
      refused_by_wave(pool({1}, 0, {lease}), me).value_or(""),
      HasSubstr("1 is being updated (an unknown node (Lease haulout-default-0 has no holder: delete the Lease))"));
  lease = slot(0, "a");
  lease.labels.clear();
  EXPECT_THAT(refused_by_wave(pool({1}, 0, {lease}), me).value_or(""), HasSubstr("lacks the label haulout.dev/pool"));
}

// Two nodes that take the last place of a wave at the same time ask for the same name, and the API server gives it to
// one of them.
TEST_F(Waves, LeaveOneNameForOnePlace) {
  EXPECT_EQ(choose_slot(pool({1}, 0), me).take, 0u);
  EXPECT_EQ(choose_slot(pool({1, 2}, 1, {slot(0, "a")}), me).take, 1u);
  EXPECT_EQ(choose_slot(pool({1, 2}, 1, {slot(3, "a")}), me).take, 0u);
  EXPECT_EQ(choose_slot(pool({1, 2}, 2), me).take, 0u);
}

TEST_F(Waves, KeepThePlaceOfANodeThatHasReleasedItsSlot) {
  RollOut roll_out{version, {1, 2}};
  roll_out.elsewhere = {"old"};
  RollOut seen = roll_out;
  note_released(seen, {"a", "b", "old", ""}, {"b"}, false);
  EXPECT_THAT(seen.returned, UnorderedElementsAre(Pair("a", RollOut::Return{false})));
  note_released(seen, {"a"}, {}, true);
  EXPECT_THAT(seen.returned, UnorderedElementsAre(Pair("a", RollOut::Return{})));
  seen.returned["a"] = {false, "a is degraded"};
  note_released(seen, {"a"}, {}, false);
  EXPECT_EQ(seen.returned["a"].why, "a is degraded");
  note_released(roll_out, {"a"}, {"a"}, true);
  EXPECT_THAT(roll_out.returned, IsEmpty());
}

TEST_F(Waves, NameNoMoreThanAFewNodes) {
  std::vector<k8s::Lease> slots;
  for (std::size_t i = 0; i < 7; ++i) slots.push_back(slot(i, "n" + std::to_string(i)));
  GroupView view = pool({7}, 0, std::move(slots));
  view.limit = 20;
  EXPECT_THAT(choose_slot(view, me).why, HasSubstr("7 are being updated (n0, n1, n2, n3, n4 and 2 more)"));
}

}  // namespace
}  // namespace haulout::agent
