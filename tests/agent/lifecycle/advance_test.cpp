#include "agent/lifecycle/advance.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

struct Advance : ::testing::Test {
  Record go(Record record, Event event) { return advance(std::move(record), event, moment, times); }
  Record in(State state) {
    Record record;
    record.state = state;
    record.boot_id = "boot-1";
    return record;
  }
  Advance() {
    moment.now = WallTime(1000s);
    moment.boot_id = "boot-1";
    moment.booted = "1.0";
    moment.slot = "haulout-default-0";
    moment.run = "run-1";
    moment.pending = {Need::yes, {"kernel"}, "1.1"};
  }
  Moment moment;
  LifecycleTimes times;
};

TEST_F(Advance, ATurnNamesTheRunAndWhatItIsFor) {
  const Record record = go(in(State::waiting), Event::turn_taken);
  EXPECT_EQ(record.state, State::draining);
  EXPECT_EQ(record.slot, "haulout-default-0");
  EXPECT_EQ(record.run, "run-1");
  EXPECT_EQ(record.from, "1.0");
  EXPECT_EQ(record.to, "1.1");
  EXPECT_THAT(record.reasons, ElementsAre("kernel"));
  EXPECT_EQ(record.began, moment.now);
  EXPECT_EQ(record.since, moment.now);
}

// Each attempt determines for itself which pods come back and which volumes stay attached.
TEST_F(Advance, ATurnBeginsWithoutWhatTheLastAttemptHasFound) {
  Record record = in(State::waiting);
  record.leaked = {"pv-old"};
  record.evicted_daemon_sets = {"ds-old"};
  record.pinned = {"shop/ReplicaSet/db"};
  record.cordoned = true;
  record = go(std::move(record), Event::turn_taken);
  EXPECT_THAT(record.leaked, IsEmpty());
  EXPECT_THAT(record.evicted_daemon_sets, IsEmpty());
  EXPECT_THAT(record.pinned, IsEmpty());
  EXPECT_FALSE(record.cordoned);
}

// A node counts as one that has come back well with a version (--ramp) only by an update of its own that was verified.
TEST_F(Advance, OnlyAVerifiedUpdateIsAProofOfItsVersion) {
  moment.slot_version = "1.1";
  Record record = go(in(State::waiting), Event::turn_taken);
  EXPECT_EQ(record.slot_version, "1.1");
  for (const Event event : {Event::drained, Event::reboot_due, Event::boot_changed}) {
    record = go(std::move(record), event);
    EXPECT_EQ(record.updated_to, "") << to_string(event);
  }
  moment.booted = "1.1";
  const Record well = go(record, Event::verified);
  EXPECT_EQ(well.updated_to, "1.1");
  EXPECT_EQ(go(go(well, Event::uncordoned), Event::soaked).updated_to, "1.1");
  EXPECT_EQ(go(go(well, Event::uncordoned), Event::soaked).slot_version, "");
  EXPECT_EQ(go(record, Event::not_verified).updated_to, "");
  moment.booted = "1.2";
  EXPECT_EQ(go(record, Event::verified).updated_to, "1.2") << "what runs, not what was expected";
  moment.booted.clear();
  EXPECT_EQ(go(record, Event::verified).updated_to, "") << "unknown";
}

TEST_F(Advance, AProofLastsWhileItsVersionRuns) {
  Record record = in(State::idle);
  record.updated_to = "1.0";
  record.state = State::verifying;  // after a boot that belongs to no update
  EXPECT_EQ(go(record, Event::verified).updated_to, "1.0");
  moment.booted = "0.9";
  EXPECT_EQ(go(record, Event::verified).updated_to, "") << "a person has booted the old version";
  moment.booted = "1.0";
  record.updated_to = record.to = "1.1";
  record.began = moment.now;
  EXPECT_EQ(go(record, Event::not_verified).updated_to, "") << "it has failed this time";
  record.updated_to = "1.0";
  EXPECT_EQ(go(record, Event::not_verified).updated_to, "1.0");
  record.to.clear();
  EXPECT_EQ(go(record, Event::verified).updated_to, "1.0") << "a reboot without a new version";
}

// With --ramp a failed node keeps its place in the wave, also when a person requests another attempt.
TEST_F(Advance, AFailureWithAVersionIsKnownUntilTheNodeHasRunWellWithIt) {
  moment.slot_version = moment.pending.target = "1.1";
  moment.pending.need = Need::yes;
  moment.booted = "1.0";
  Record record = go(in(State::waiting), Event::turn_taken);
  for (const Event event :
       {Event::drained, Event::reboot_due, Event::boot_changed, Event::not_verified, Event::needed}) {
    EXPECT_EQ(record.failed_to, "") << to_string(event);
    record = go(std::move(record), event);
    if (event == Event::not_verified) EXPECT_EQ(std::exchange(record.failed_to, ""), "1.1");
  }
  record.failed_to = "1.1";
  for (const Event event :
       {Event::not_needed, Event::needed, Event::gates_open, Event::turn_taken, Event::gate_closed, Event::gates_open,
        Event::turn_taken, Event::drained, Event::reboot_due, Event::boot_changed}) {
    record = go(std::move(record), event);
    EXPECT_EQ(record.failed_to, "1.1") << to_string(event);
  }
  Record old = go(record, Event::verified);
  EXPECT_EQ(old.failed_to, "1.1") << "the old version runs again";
  moment.booted.clear();
  EXPECT_EQ(go(record, Event::verified).failed_to, "1.1") << "what runs is unknown";
  moment.booted = "1.2";
  EXPECT_EQ(go(record, Event::verified).failed_to, "") << "no node waits for it";
  moment.booted = "1.1";
  EXPECT_EQ(go(record, Event::verified).failed_to, "");
  // It runs the version already, and a person has only requested a reboot.
  record.from = "1.1";
  record.to.clear();
  record.slot_version.clear();
  EXPECT_EQ(go(record, Event::verified).failed_to, "");
  EXPECT_EQ(go(record, Event::verified).updated_to, "1.1");
}

// A person, or another program, has made the update of the node superfluous, and the agent has seen no update end. So
// no other node waits for this one. That a version was rolled back stays known: the node may need nothing only because
// it refuses that version, or because the version is not offered at the moment.
TEST_F(Advance, AFailureEndsWhenTheNodeNeedsNothingAnyMoreUnlessItRolledBack) {
  struct Row {
    State from;
    std::vector<std::string> bad_targets;
    Event event;
    std::string failed_to;
    std::string booted = "1.0";
  };
  const std::vector<Row> rows{
      {State::pending, {}, Event::not_needed, ""},
      {State::pending, {}, Event::not_needed, "", "1.1"},  // repaired by others
      {State::degraded, {}, Event::not_needed, "", "1.1"},
      {State::degraded, {}, Event::not_needed, "1.1", ""},  // what runs is unknown
      {State::degraded, {}, Event::not_needed, "", "1.2"},
      {State::degraded, {}, Event::not_needed, ""},
      {State::pending, {"1.1"}, Event::not_needed, "1.1"},
      {State::degraded, {"1.1"}, Event::not_needed, "1.1"},
      {State::pending, {"1.0", "1.2"}, Event::not_needed, ""},
      {State::ready, {}, Event::not_needed, "1.1"},  // goes on to pending, where the agent asks again
      {State::soaking, {}, Event::soaked, "1.1"},    // of another version
      {State::degraded, {}, Event::needed, "1.1"},
  };
  for (const Row& row : rows) {
    Record record = in(row.from);
    record.failed_to = "1.1";
    record.bad_targets = row.bad_targets;
    moment.booted = row.booted;
    EXPECT_EQ(go(record, row.event).failed_to, row.failed_to)
        << to_string(row.from) << " " << to_string(row.event) << " with " << row.booted;
  }
}

// The order of a roll-out goes by this time, and by the version for which a node waits.
TEST_F(Advance, TheNeedLastsFromItsFirstMomentUntilTheNodeIsIdle) {
  Record record = go(in(State::idle), Event::needed);
  const WallTime first = moment.now;
  for (const Event event :
       {Event::gates_open, Event::turn_taken, Event::drain_ended, Event::gates_open, Event::turn_taken, Event::drained,
        Event::reboot_due, Event::boot_changed, Event::not_verified, Event::needed, Event::not_needed, Event::needed}) {
    EXPECT_EQ(record.needed_since, record.state == State::idle ? std::nullopt : std::optional(first))
        << to_string(event);
    moment.now += 1min;
    record = go(std::move(record), event);
  }
  EXPECT_EQ(record.needed_since, moment.now) << "a new need";
  Record of_an_older_agent = in(State::waiting);
  of_an_older_agent.waits_for = "1.1";
  EXPECT_EQ(go(of_an_older_agent, Event::turn_taken).waits_for, "");
  EXPECT_EQ(go(of_an_older_agent, Event::gate_closed).waits_for, "");
  EXPECT_EQ(go(of_an_older_agent, Event::gate_closed).needed_since, moment.now);
}

// The metrics show since when the node has needed an update. While it soaks, it needs none.
TEST_F(Advance, AVerifiedUpdateEndsTheNeed) {
  Record record = go(in(State::idle), Event::needed);
  for (const Event event :
       {Event::gates_open, Event::turn_taken, Event::drained, Event::reboot_due, Event::boot_changed}) {
    record = go(std::move(record), event);
    EXPECT_EQ(record.needed_since, moment.now) << to_string(event);
  }
  record = go(std::move(record), Event::verified);
  EXPECT_EQ(record.needed_since, std::nullopt);
  record = go(go(std::move(record), Event::uncordoned), Event::hook_failed);
  moment.now += 1h;
  EXPECT_EQ(go(std::move(record), Event::needed).needed_since, moment.now) << "a new need";
}

// A boot that belongs to no attempt says nothing about the need.
TEST_F(Advance, ABootOfOthersDoesNotEndTheNeed) {
  Record record = go(go(in(State::idle), Event::needed), Event::gates_open);
  record = go(go(go(std::move(record), Event::turn_taken), Event::boot_changed), Event::verified);
  EXPECT_EQ(record.needed_since, moment.now);
}

TEST_F(Advance, TheRecordKeepsHowLongTheLastCompleteDrainTook) {
  const auto drained_in = [this](Record record, Event event, Duration time) {
    record = go(go(std::move(record), Event::gates_open), Event::turn_taken);
    moment.now += std::chrono::duration_cast<WallTime::duration>(time);
    return go(std::move(record), event);
  };
  Record record = drained_in(in(State::pending), Event::drain_ended, 40s);
  EXPECT_EQ(record.drain_took, std::nullopt) << "the node was not drained";
  record = drained_in(std::move(record), Event::drained, 90s);
  EXPECT_EQ(record.drain_took, 90s);
  record = go(go(std::move(record), Event::reboot_due), Event::boot_changed);
  record = go(go(go(std::move(record), Event::verified), Event::uncordoned), Event::soaked);
  EXPECT_EQ(record.drain_took, 90s);
  record = drained_in(go(std::move(record), Event::needed), Event::gate_closed, 10s);
  EXPECT_EQ(record.drain_took, 90s);
  record = drained_in(std::move(record), Event::update_due, 30s);
  EXPECT_EQ(record.drain_took, 30s);
  Record clock_back = go(go(in(State::pending), Event::gates_open), Event::turn_taken);
  moment.now -= 1h;
  EXPECT_EQ(go(std::move(clock_back), Event::drained).drain_took, std::nullopt);
}

TEST_F(Advance, AFailedInstallationIsThatOfTheVersionForWhichTheSlotWasTaken) {
  moment.slot_version = "1.2";
  moment.pending = {.need = Need::yes, .target = "1.1"};  // in place since before
  Record record = go(go(in(State::waiting), Event::turn_taken), Event::update_due);
  EXPECT_EQ(go(record, Event::update_given_up).failed_to, "1.2");
  moment.pending.target = "1.3";
  record = go(record, Event::installed);
  EXPECT_EQ(record.slot_version, "1.3") << "what was installed";
  EXPECT_EQ(go(go(record, Event::reboot_due), Event::reboot_impossible).failed_to, "1.3");
}

// A version that cannot be read proves nothing, and disproves nothing.
TEST_F(Advance, AnUnknownVersionEndsNoProof) {
  Record record = in(State::verifying);
  record.updated_to = "1.1";
  moment.booted.clear();
  EXPECT_EQ(go(record, Event::verified).updated_to, "1.1");
}

// A node that was added with the version, or that a person has updated, is no proof.
TEST_F(Advance, ABootThatBelongsToNoUpdateIsNoProof) {
  moment.booted = "1.1";
  EXPECT_EQ(go(in(State::verifying), Event::verified).updated_to, "");
}

// Readiness taints that the Node had before the update do not count after it. Those that have gone meanwhile do.
TEST_F(Advance, TaintsFromBeforeTheUpdateAreRemembered) {
  moment.readiness_taints = {"readiness.k8s.io/a", "readiness.k8s.io/b"};
  Record record = go(in(State::waiting), Event::turn_taken);
  EXPECT_THAT(record.old_taints, Optional(ElementsAre("readiness.k8s.io/a", "readiness.k8s.io/b")));
  moment.readiness_taints = {"readiness.k8s.io/b", "readiness.k8s.io/c"};
  for (const Event event : {Event::drained, Event::reboot_due}) record = go(std::move(record), event);
  EXPECT_THAT(record.old_taints, Optional(ElementsAre("readiness.k8s.io/b")));
  moment.readiness_taints = {"readiness.k8s.io/c"};  // right after the boot, before the controller has set its taints
  for (const Event event : {Event::boot_changed, Event::verified, Event::uncordoned}) {
    record = go(std::move(record), event);
    EXPECT_THAT(record.old_taints, Optional(ElementsAre("readiness.k8s.io/b"))) << to_string(event);
  }
  record = go(std::move(record), Event::soaked);
  EXPECT_EQ(record.old_taints, std::nullopt);
}

// P4: a node that was degraded because of a taint must not become well by another attempt, which finds the taint there.
TEST_F(Advance, TaintsOfABootThatWasNeverVerifiedAreNotOldOnes) {
  moment.readiness_taints = {"readiness.k8s.io/old"};
  Record record = go(in(State::waiting), Event::turn_taken);
  for (const Event event : {Event::drained, Event::reboot_due, Event::boot_changed})
    record = go(std::move(record), event);
  moment.readiness_taints = {"readiness.k8s.io/new", "readiness.k8s.io/old"};
  for (const Event event : {Event::not_verified, Event::needed, Event::gates_open, Event::gate_closed,
                            Event::gates_open, Event::turn_taken, Event::drain_ended, Event::gates_open,
                            Event::turn_taken, Event::drained, Event::reboot_due, Event::boot_changed}) {
    record = go(std::move(record), event);
    EXPECT_THAT(record.old_taints, Optional(ElementsAre("readiness.k8s.io/old"))) << to_string(event);
    EXPECT_TRUE(record.unverified) << to_string(event);
  }
  record = go(std::move(record), Event::verified);
  EXPECT_FALSE(record.unverified);
  for (const Event event : {Event::uncordoned, Event::soaked, Event::needed, Event::gates_open, Event::turn_taken})
    record = go(std::move(record), event);
  EXPECT_THAT(record.old_taints, Optional(ElementsAre("readiness.k8s.io/new", "readiness.k8s.io/old")));
}

// P4: the machine went down during an installation, and the installation then failed. The network of that boot may be
// broken because of it, so its taint is no older one for the next attempt.
TEST_F(Advance, TaintsOfABootDuringAnInstallationAreNotOldOnes) {
  moment.readiness_taints = {"readiness.k8s.io/old"};
  Record record = go(in(State::waiting), Event::turn_taken);
  for (const Event event : {Event::update_due, Event::boot_changed}) record = go(std::move(record), event);
  EXPECT_TRUE(record.unverified);
  for (const Event end : {Event::update_failed, Event::gate_closed, Event::cordon_lost, Event::turn_lost}) {
    moment.readiness_taints = {"readiness.k8s.io/new", "readiness.k8s.io/old"};
    Record next = record;
    for (const Event event : {end, Event::gates_open, Event::turn_taken, Event::update_due, Event::installed,
                              Event::reboot_due, Event::boot_changed})
      next = go(std::move(next), event);
    EXPECT_THAT(next.old_taints, Optional(ElementsAre("readiness.k8s.io/old"))) << to_string(end);
    EXPECT_TRUE(next.unverified) << to_string(end);
  }
}

// Updates without a reboot change the node, too.
TEST_F(Advance, UpdatesInPlaceAreNotVerifiedYet) {
  Record record = go(go(in(State::waiting), Event::turn_taken), Event::update_due);
  record = go(std::move(record), Event::reboot_not_needed);
  EXPECT_TRUE(record.unverified);
  EXPECT_FALSE(go(std::move(record), Event::verified).unverified);
}

// Right after a boot the controller may not have set its taint yet, so a taint that is missing then has not gone.
TEST_F(Advance, ABootDuringAnInstallationForgetsNoOlderTaint) {
  moment.readiness_taints = {"readiness.k8s.io/old"};
  Record record = go(go(in(State::waiting), Event::turn_taken), Event::update_due);
  moment.readiness_taints.clear();
  record = go(std::move(record), Event::boot_changed);
  EXPECT_THAT(record.old_taints, Optional(ElementsAre("readiness.k8s.io/old")));
}

// The agent of the last attempt knew no readiness taints. Those of now may come from its boot, so none is an older one.
TEST_F(Advance, AnAttemptAfterAnUnverifiedBootOfAnEarlierAgentHasNoOlderTaints) {
  moment.readiness_taints = {"readiness.k8s.io/new"};
  Record record = in(State::waiting);
  record.unverified = true;
  EXPECT_THAT(go(std::move(record), Event::turn_taken).old_taints, Optional(IsEmpty()));
}

// A person has ended the attempt; the next one has nothing to do with it.
TEST_F(Advance, AnIdleNodeBeginsAnew) {
  moment.readiness_taints = {"readiness.k8s.io/a"};
  Record record = in(State::verifying);
  record.old_taints = std::set<std::string>{"readiness.k8s.io/old"};
  for (const Event event : {Event::not_verified, Event::needed, Event::not_needed})
    record = go(std::move(record), event);
  EXPECT_FALSE(record.unverified);
  EXPECT_EQ(record.old_taints, std::nullopt);
}

TEST_F(Advance, ARequestWithoutANeedExpectsNoVersion) {
  moment.pending = {Need::no, {}, "1.1"};
  moment.requested = true;
  const Record record = go(in(State::waiting), Event::turn_taken);
  EXPECT_TRUE(record.requested);
  EXPECT_EQ(record.to, "");
}

TEST_F(Advance, AttemptsThatCameToNothingAreSpacedMoreAndMore) {
  Record record = in(State::draining);
  std::vector<std::int64_t> minutes;
  for (int i = 0; i < 6; ++i) {
    record.state = State::draining;
    record = go(std::move(record), Event::drain_ended);
    EXPECT_EQ(record.state, State::pending);
    minutes.push_back(std::chrono::duration_cast<std::chrono::minutes>(*record.not_before - moment.now).count());
  }
  EXPECT_THAT(minutes, ElementsAre(5, 10, 20, 40, 60, 60));
}

TEST_F(Advance, AClosedGateIsNoFailure) {
  const Record record = go(in(State::waiting), Event::gate_closed);
  EXPECT_EQ(record.state, State::pending);
  EXPECT_EQ(record.failures, 0u);
  EXPECT_EQ(record.not_before, std::nullopt);
}

// A server that cordons a node when it gives it a slot, and uncordons it when it gets the slot back, would otherwise
// give it the slot again and again, many times a minute.
TEST_F(Advance, AGateThatClosesWhenTheNodeHasItsSlotIsFollowedByAWait) {
  moment.cause = "NodeCordoned";
  const Record record = go(in(State::waiting), Event::gate_closed);
  EXPECT_EQ(record.state, State::pending);
  EXPECT_EQ(record.not_before, moment.now + 5min);
  EXPECT_EQ(record.cause, "NodeCordoned");
}

// A gate closes after the drain has begun, so the attempt ends without a reboot although it may have evicted pods. The
// next attempt must wait, because it evicts pods again.
TEST_F(Advance, AGateThatGivesADrainUpIsFollowedByAWait) {
  moment.cause = "Paused";
  for (const State from : {State::draining, State::ready, State::rebooting}) {
    const Record record = go(in(from), Event::gate_closed);
    EXPECT_EQ(record.state, State::pending);
    EXPECT_EQ(record.not_before, moment.now + 5min);
    EXPECT_EQ(record.cause, "Paused");
  }
}

// Two kernel updates have the same reason, `kernel`. The second one counts as a new need only if the back end has
// reported, since the reboot for the first one, that no reboot is needed.
TEST_F(Advance, ANeedThatWentAwayAfterARebootWasServedByIt) {
  Record record = in(State::rebooting);
  record.reasons = {"kernel"};
  moment.boot_id = "boot-2";
  moment.pending = {Need::no, {}, ""};  // an answer from before the boot says nothing about the new boot
  record = go(std::move(record), Event::boot_changed);
  EXPECT_FALSE(record.reboots.back().cleared);
  moment.pending = {Need::unknown, {}, ""};
  record = go(std::move(record), Event::verified);
  EXPECT_FALSE(record.reboots.back().cleared);
  moment.pending = {Need::no, {}, ""};
  record = go(std::move(record), Event::uncordoned);
  EXPECT_TRUE(record.reboots.back().cleared);
}

TEST_F(Advance, EachWayToRebootHasItsOwnTime) {
  Record record = go(in(State::ready), Event::reboot_due);
  EXPECT_EQ(record.method, 0u);
  EXPECT_EQ(record.deadline, moment.now + 10min);
  moment.now += 10min;
  record = go(std::move(record), Event::reboot_overdue);
  EXPECT_EQ(record.method, 1u);
  EXPECT_EQ(record.deadline, moment.now + 10min);
}

TEST_F(Advance, ABootIsRememberedWithItsReasons) {
  Record record = in(State::rebooting);
  record.reasons = {"kernel"};
  record.to = "1.1";
  moment.boot_id = "boot-2";
  for (int i = 0; i < 12; ++i) {
    record.state = State::rebooting;
    record = go(std::move(record), Event::boot_changed);
  }
  EXPECT_EQ(record.state, State::verifying);
  EXPECT_EQ(record.boot_id, "boot-2");
  EXPECT_EQ(record.reboots.size(), 10u);
  EXPECT_EQ(record.reboots.back(), (PastReboot{moment.now, {"kernel"}, "1.1"}));
}

// The record notes a reboot before the agent sends the request for it, so that a crash cannot hide it. When the boot is
// observed, it replaces all requests noted for it and counts once.
TEST_F(Advance, ARequestCountsUntilItsBootIsSeen) {
  Record record = in(State::rebooting);
  record.reasons = {"kernel"};
  record.to = "1.1";
  note_request(record, {"k1", {"systemd", 5}}, moment.now);
  EXPECT_TRUE(record.asked);
  record = go(std::move(record), Event::reboot_overdue);
  EXPECT_FALSE(record.asked);
  EXPECT_FALSE(record.marks);
  note_request(record, {}, moment.now + 600s);
  EXPECT_THAT(record.reboots, ElementsAre(PastReboot{moment.now, {"kernel"}, "1.1", false, true},
                                          PastReboot{moment.now + 600s, {"kernel"}, "1.1", false, true}));
  withdraw_request(record);
  EXPECT_FALSE(record.asked);
  EXPECT_EQ(record.reboots.size(), 1u);
  withdraw_request(record);
  EXPECT_EQ(record.reboots.size(), 1u) << "there was none to withdraw";
  moment.now += 700s;
  moment.boot_id = "boot-2";
  record = go(std::move(record), Event::boot_changed);
  EXPECT_THAT(record.reboots, ElementsAre(PastReboot{moment.now, {"kernel"}, "1.1"}));
}

// The boot id has not changed, so it is unknown which system the machine runs. The node must not take pods.
TEST_F(Advance, AMachineThatKeptItsBootIdStaysCordoned) {
  for (const State from : {State::ready, State::rebooting}) {
    const Record record = go(in(from), Event::boot_unknown);
    EXPECT_EQ(record.state, State::degraded);
    EXPECT_FALSE(record.uncordon);
    EXPECT_TRUE(record.bad_targets.empty());
  }
}

// In the rows with `ended`, the boot was not a requested one: the machine crashed or was rebooted during the drain, or
// another program rebooted it although the agent is to do that. Such a boot completes no update and counts against no
// version. In the other rows the boot belongs to the update.
TEST_F(Advance, ABootThatNobodyHadAskedForEndsTheAttempt) {
  moment.boot_id = "boot-2";
  const struct {
    State from;
    bool others_reboot, ended;
  } rows[] = {
      {State::draining, false, true}, {State::draining, true, true},    {State::ready, false, true},
      {State::ready, true, false},    {State::rebooting, false, false}, {State::soaking, false, false},
  };
  for (const auto& row : rows) {
    Record record = in(row.from);
    record.reasons = {"kernel"};
    record.from = "1.0";
    record.to = "1.1";
    record.began = moment.now;
    moment.others_reboot = row.others_reboot;
    record = go(std::move(record), Event::boot_changed);
    EXPECT_EQ(record.state, State::verifying);
    EXPECT_EQ(record.to, row.ended ? "" : "1.1") << to_string(row.from);
    EXPECT_EQ(record.began.has_value(), !row.ended) << to_string(row.from);
    const PastReboot expected = row.ended ? PastReboot{moment.now} : PastReboot{moment.now, {"kernel"}, "1.1"};
    EXPECT_EQ(record.reboots.back(), expected) << to_string(row.from);
  }
}

TEST_F(Advance, AnEndClearsTheFailuresAndTellsHowLongItTook) {
  Record record = in(State::verifying);
  record.began = moment.now - 7min;
  record.failures = 2;
  record.not_before = moment.now;
  record = go(std::move(record), Event::verified);
  EXPECT_EQ(record.state, State::uncordoning);
  EXPECT_EQ(record.failures, 0u);
  EXPECT_EQ(record.not_before, std::nullopt);
  EXPECT_THAT(record.durations, ElementsAre(420s));
  EXPECT_EQ(record.verified_at, moment.now);
}

// The node is verified again after a failed hook before the release, a boot during the soak time, or a resolved
// failure. It is still the same update. The time until then says nothing about the duration of the next update.
TEST_F(Advance, AnUpdateIsTimedAndJudgedOnce) {
  const std::vector<Event> ways[] = {
      {Event::verified, Event::uncordoned, Event::hook_failed, Event::healed, Event::verified},
      {Event::verified, Event::uncordoned, Event::boot_changed, Event::verified},
      {Event::verified, Event::boot_changed, Event::verified},
      {Event::not_verified, Event::healed, Event::verified},
      {Event::not_verified, Event::boot_changed, Event::verified},
  };
  for (const auto& way : ways) {
    Record record = go(in(State::waiting), Event::turn_taken);
    EXPECT_FALSE(record.judged);
    record.state = State::verifying;
    for (const Event event : way) {
      moment.now += 10h;
      record = go(std::move(record), event);
      EXPECT_TRUE(record.judged) << to_string(event);
    }
    if (way.front() == Event::verified)
      EXPECT_THAT(record.durations, ElementsAre(10h));
    else
      EXPECT_THAT(record.durations, IsEmpty());
    EXPECT_EQ(record.verified_at, moment.now);
    record = go(go(std::move(record), Event::uncordoned), Event::soaked);
    EXPECT_FALSE(record.judged) << "the next one is another one";
    record.state = State::waiting;
    EXPECT_FALSE(go(std::move(record), Event::turn_taken).judged);
  }
}

// P4: after a boot that was not requested, the node is verified and healthy, but no update has succeeded.
TEST_F(Advance, ABootThatNobodyHadAskedForIsNoUpdate) {
  Record record = in(State::draining);
  record.began = moment.now - 7min;
  record.verified_at = WallTime(1s);
  record.failures = 2;
  record.not_before = moment.now - 8min;
  moment.boot_id = "boot-2";
  record = go(std::move(record), Event::boot_changed);
  for (const Event event : {Event::verified, Event::uncordoned, Event::boot_changed, Event::not_verified, Event::healed,
                            Event::verified, Event::uncordoned}) {
    moment.cause = event == Event::not_verified ? "NodeNotReady" : "";
    record = go(std::move(record), event);
    EXPECT_EQ(record.cause, record.state == State::degraded ? "NodeNotReady" : "RebootedMeanwhile") << to_string(event);
    EXPECT_EQ(record.verified_at, WallTime(1s)) << to_string(event);
    EXPECT_EQ(record.failures, 2u) << to_string(event);
    EXPECT_EQ(record.not_before, WallTime(1000s) - 8min) << to_string(event);
    EXPECT_THAT(record.durations, IsEmpty()) << to_string(event);
  }
  record = go(std::move(record), Event::soaked);
  EXPECT_EQ(record.cause + record.cause_message, "");
}

// The attempt was given up. Then the reboot limit makes the node degraded, and a person reboots it. That boot does not
// belong to the attempt.
TEST_F(Advance, ABootAfterAnAttemptThatWasGivenUpIsNotJudgedByIt) {
  for (const Event event : {Event::drain_ended, Event::cordon_lost, Event::turn_lost, Event::gate_closed}) {
    Record record = go(go(in(State::waiting), Event::turn_taken), event);
    EXPECT_EQ(record.from + record.to, "") << to_string(event);
    record = go(std::move(record), Event::brake);
    moment.boot_id = "boot-2";
    record = go(std::move(record), Event::boot_changed);
    EXPECT_EQ(record.state, State::verifying);
    EXPECT_FALSE(record.began);
    EXPECT_THAT(go(record, Event::not_verified).bad_targets, IsEmpty());
    record = go(std::move(record), Event::verified);
    EXPECT_THAT(record.durations, IsEmpty());
    EXPECT_EQ(record.verified_at, std::nullopt);
  }
}

TEST_F(Advance, TheSoakTimeIsAPointInTime) {
  times.soak = 3min;
  EXPECT_EQ(go(in(State::uncordoning), Event::uncordoned).deadline, moment.now + 3min);
}

TEST_F(Advance, AVersionThatWasRolledBackIsNotForgotten) {
  Record record = in(State::verifying);
  record.began = moment.now;
  record.from = "1.0";
  record.to = "1.1";
  moment.booted = "1.0";
  moment.cause = "RolledBack";
  record = go(std::move(record), Event::not_verified);
  EXPECT_EQ(record.state, State::degraded);
  EXPECT_EQ(record.cause, "RolledBack");
  EXPECT_FALSE(record.uncordon);
  EXPECT_THAT(record.bad_targets, ElementsAre("1.1"));
  record = go(std::move(record), Event::healed);
  EXPECT_EQ(record.cause, "");
  EXPECT_THAT(record.bad_targets, ElementsAre("1.1"));
}

TEST_F(Advance, OnlyAnAgentThatInstallsRemembersAVersionThatFailed) {
  struct Row {
    const char* why;
    State from;
    Event event;
    std::string cause;
    std::vector<std::string> failed;
  };
  const std::vector<std::string> none, verified{"1.1"}, installed{"2.0"};
  const std::vector<Row> rows = {
      {"it was rolled back, or the node is not well with it", State::verifying, Event::not_verified, "x", verified},
      {"it was not installed", State::updating, Event::update_given_up, "UpdateFailed", installed},
      {"it was not installed before the drain", State::pending, Event::update_given_up, "UpdateFailed", installed},
      {"another program installs", State::updating, Event::update_given_up, "UpdateBlocked", none},
      {"its reboot did not happen", State::rebooting, Event::reboot_impossible, "RebootFailed", none},
  };
  for (const Row& row : rows)
    for (const bool installs : {true, false}) {
      Record record = in(row.from);
      record.began = moment.now;
      record.to = "1.1";
      moment.installs = installs;
      moment.cause = row.cause;
      moment.updates = {.need = Need::yes, .target = "2.0"};
      EXPECT_EQ(go(record, row.event).failed_versions, installs ? row.failed : none) << row.why;
    }
}

TEST_F(Advance, AVersionThatRunsWellIsNoFailedOneAnyMore) {
  Record record = in(State::verifying);
  record.failed_versions = {"1.1", "1.2"};
  moment.booted = "1.1";
  EXPECT_THAT(go(record, Event::verified).failed_versions, ElementsAre("1.2"));
  moment.booted = "1.0";
  EXPECT_THAT(go(record, Event::verified).failed_versions, ElementsAre("1.1", "1.2"));
  // The newest is the last one, and no more than ten are kept.
  record.to = "1.1";
  moment.installs = true;
  for (int i = 0; i < 9; ++i) record.failed_versions.push_back("2." + std::to_string(i));
  const Record failed = go(record, Event::not_verified);
  EXPECT_EQ(failed.failed_versions.size(), remembered_updates);
  EXPECT_EQ(failed.failed_versions.back(), "1.1");
}

TEST_F(Advance, ANodeThatIsOnlyLateIsNoBadVersion) {
  Record record = in(State::verifying);
  record.from = "1.0";
  record.to = "1.1";
  moment.booted = "1.1";
  moment.cause = "NodeNotReady";
  EXPECT_THAT(go(std::move(record), Event::not_verified).bad_targets, IsEmpty());
}

TEST_F(Advance, ANodeWhoseRebootFailedTakesPodsAgain) {
  moment.cause = "RebootFailed";
  const Record record = go(in(State::rebooting), Event::reboot_impossible);
  EXPECT_TRUE(record.uncordon);
  EXPECT_EQ(record.cause, "RebootFailed");
}

TEST_F(Advance, RestForgetsTheAttemptAndKeepsTheHistory) {
  Record record = in(State::soaking);
  record.reasons = {"kernel"};
  record.from = "1.0";
  record.to = "1.1";
  record.requested = true;
  record.durations = {5s};
  record = go(std::move(record), Event::soaked);
  EXPECT_EQ(record.state, State::idle);
  EXPECT_THAT(record.reasons, IsEmpty());
  EXPECT_EQ(record.from + record.to, "");
  EXPECT_FALSE(record.requested);
  EXPECT_THAT(record.durations, ElementsAre(5s));
}

TEST_F(Advance, PassedHooksStayPassedUntilTheirPointComesAgain) {
  Record record = in(State::draining);
  record.hooks_passed = {"before-drain", "after-drain"};
  record = go(std::move(record), Event::drained);
  EXPECT_THAT(record.hooks_passed, ElementsAre("before-drain", "after-drain"));
  EXPECT_THAT(go(record, Event::emptiness_lost).hooks_passed, ElementsAre("before-drain"));
  record = go(std::move(record), Event::reboot_due);
  EXPECT_THAT(record.hooks_passed, ElementsAre("before-drain", "after-drain"));
  EXPECT_THAT(go(std::move(record), Event::boot_changed).hooks_passed, IsEmpty());
}

TEST_F(Advance, AnAttemptThatEndedAsksAnew) {
  Record record = in(State::draining);
  record.hooks_passed = {"before-drain"};
  record.hooks_asked = moment.now;
  record = go(std::move(record), Event::drain_ended);
  EXPECT_THAT(record.hooks_passed, IsEmpty());
  EXPECT_EQ(record.hooks_asked, std::nullopt);
}

TEST_F(Advance, WhoeverWasAskedMayAnswerADegradedNodeUntilItBootsAgain) {
  Record record = in(State::verifying);
  record.hooks_asked = moment.now;
  moment.cause = "HookFailed";
  record = go(std::move(record), Event::not_verified);
  EXPECT_EQ(record.hooks_asked, moment.now);
  EXPECT_EQ(go(record, Event::boot_changed).hooks_asked, std::nullopt);
  record.hooks_passed = {"after-boot"};
  EXPECT_THAT(go(std::move(record), Event::healed).hooks_passed, ElementsAre("after-boot"));
}

TEST_F(Advance, AHookThatFailsBeforeTheReleaseLeavesTheNodeInService) {
  moment.cause = "HookFailed";
  const Record record = go(in(State::soaking), Event::hook_failed);
  EXPECT_EQ(record.state, State::degraded);
  EXPECT_TRUE(record.uncordon);
  EXPECT_THAT(record.bad_targets, IsEmpty());
}

TEST_F(Advance, AnEventWithoutMeaningIsABug) {
  EXPECT_DEATH(go(in(State::idle), Event::reboot_due), "");
}

}  // namespace
}  // namespace haulout::agent
