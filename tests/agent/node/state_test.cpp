#include "agent/node/state.hpp"

#include <gmock/gmock.h>

#include <set>

namespace haulout::agent {
namespace {

TEST(States, NamesGoBothWays) {
  std::set<std::string_view> names;
  for (const State state : all_states) {
    EXPECT_EQ(state_of(to_string(state)), state);
    names.insert(to_string(state));
  }
  EXPECT_EQ(names.size(), all_states.size());
  EXPECT_EQ(state_of("busy"), std::nullopt);
}

TEST(Transitions, EachEventOfAStateLeadsToOnePlace) {
  std::set<std::pair<State, Event>> seen;
  for (const Row& row : transitions())
    EXPECT_TRUE(seen.emplace(row.from, row.event).second) << to_string(row.from) << " " << to_string(row.event);
}

std::set<State> reachable_from(State start) {
  std::set<State> found{start};
  for (bool grew = true; grew;) {
    grew = false;
    for (const Row& row : transitions())
      if (found.contains(row.from)) grew = found.insert(row.to).second || grew;
  }
  return found;
}

TEST(Transitions, NoStateIsADeadEnd) {
  for (const State state : all_states)
    EXPECT_TRUE(reachable_from(state).contains(State::idle)) << to_string(state) << " never comes to rest";
  EXPECT_EQ(reachable_from(State::unknown).size(), all_states.size());
}

// Promises P6 and P3 (docs/reliability.md): every path to a reboot includes a slot, an empty node and the proof.
TEST(Transitions, TheWayToARebootLeavesNothingOut) {
  for (const Row& row : transitions()) {
    if (row.to == State::rebooting && row.from != State::rebooting) {
      EXPECT_EQ(row.from, State::ready);
      EXPECT_EQ(row.event, Event::reboot_due);
    }
    // Not from `rebooting`: after a blocked reboot the node waits in `ready`, and is proved empty again before the next
    // one.
    if (row.to == State::ready && row.from != State::rebooting && row.from != State::updating) {
      EXPECT_EQ(row.from, State::draining);
      EXPECT_EQ(row.event, Event::drained);
    }
    if (row.to == State::ready && row.from == State::updating) EXPECT_EQ(row.event, Event::installed);
    if (row.to == State::updating && row.from != State::updating) {
      EXPECT_EQ(row.from, State::draining);
      EXPECT_EQ(row.event, Event::update_due);
    }
    if (row.to == State::ready && row.from == State::rebooting) EXPECT_EQ(row.event, Event::reboot_blocked);
    // Updating, ready and rebooting have a slot already. They go back to draining when a pod is on the node again.
    if (row.to == State::draining && row.from == State::waiting)
      EXPECT_EQ(row.event, Event::turn_taken);
    else if (row.to == State::draining)
      EXPECT_EQ(row.event, Event::emptiness_lost) << to_string(row.from);
    if (row.event == Event::emptiness_lost) EXPECT_EQ(duties_of(row.from).turn, Duty::yes) << to_string(row.from);
  }
}

TEST(Transitions, WhoeverUncordonsIsNotAnsweredWithACordon) {
  for (const Row& row : transitions())
    if (row.event == Event::cordon_lost) EXPECT_EQ(row.to, State::pending) << to_string(row.from);
}

// In unknown, idle and pending the node has neither slot nor cordon. From draining to verifying it has both. In
// uncordoning and soaking it has the slot; in uncordoning the cordon is removed. In degraded it keeps the slot and
// the cordon that it has, and in waiting the slot.
TEST(Duties, FollowTheState) {
  for (const State state : {State::unknown, State::idle, State::pending}) {
    EXPECT_EQ(duties_of(state).turn, Duty::no) << to_string(state);
    EXPECT_EQ(duties_of(state).cordon, Duty::no) << to_string(state);
  }
  for (const State state : {State::draining, State::updating, State::ready, State::rebooting, State::verifying}) {
    EXPECT_EQ(duties_of(state).turn, Duty::yes) << to_string(state);
    EXPECT_EQ(duties_of(state).cordon, Duty::yes) << to_string(state);
  }
  EXPECT_EQ(duties_of(State::uncordoning).cordon, Duty::no);
  EXPECT_EQ(duties_of(State::uncordoning).turn, Duty::yes);
  EXPECT_EQ(duties_of(State::soaking).turn, Duty::yes);
  EXPECT_EQ(duties_of(State::soaking).cordon, Duty::no);
  EXPECT_EQ(duties_of(State::waiting).turn, Duty::keep);
  EXPECT_EQ(duties_of(State::waiting).cordon, Duty::no);
  EXPECT_EQ(duties_of(State::degraded).turn, Duty::keep);
  EXPECT_EQ(duties_of(State::degraded).cordon, Duty::keep);
  for (const State state : all_states) EXPECT_EQ(duties_of(state).shows_ready, state == State::ready);
}

// P4: only a successful installation leads out of `updating` to a reboot, or to verification without a reboot.
TEST(Transitions, AnInstallationThatFailedIsNoUpdate) {
  for (const Row& row : transitions()) {
    if (row.from != State::updating) continue;
    if (row.to == State::ready) EXPECT_EQ(row.event, Event::installed);
    if (row.to == State::verifying) EXPECT_EQ(row.event, Event::reboot_not_needed);
  }
  EXPECT_EQ(next_state(State::updating, Event::update_failed), State::pending);
  EXPECT_EQ(next_state(State::updating, Event::update_given_up), State::degraded);
  // Packages may be installed in part, so pods must not return after a boot.
  EXPECT_EQ(next_state(State::updating, Event::boot_changed), State::updating);
}

TEST(Transitions, WhatHasNoMeaningLeadsNowhere) {
  EXPECT_EQ(next_state(State::idle, Event::reboot_due), std::nullopt);
  EXPECT_EQ(next_state(State::pending, Event::drained), std::nullopt);
  EXPECT_EQ(next_state(State::draining, Event::reboot_due), std::nullopt);
}

}  // namespace
}  // namespace haulout::agent
