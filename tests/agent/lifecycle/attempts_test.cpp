// Tests what a record keeps of the attempts that have ended.
#include <gmock/gmock.h>

#include "agent/lifecycle/advance.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Attempts : ::testing::Test {
  Record go(Record record, Event event) { return advance(std::move(record), event, moment, times); }
  Record in(State state) {
    Record record;
    record.state = state;
    record.boot_id = "boot-1";
    return record;
  }
  Attempts() {
    moment.now = WallTime(1000s);
    moment.boot_id = "boot-1";
  }
  Moment moment;
  LifecycleTimes times;
};

// The record keeps how the last attempts ended. So a person can see by day why the update failed at night, although the
// node's reason is then only the closed maintenance window.
TEST_F(Attempts, TheLastAttemptsAreRemembered) {
  const auto attempt = [&](State from, Event event, const char* cause) {
    Record record = in(from);
    record.began = moment.now;
    record.to = "1.1";
    moment.cause = cause;
    moment.cause_message = *cause ? "why" : "";
    return go(std::move(record), event).attempts;
  };
  const auto ended = [&](const char* reason, const char* why) {
    return ElementsAre(PastAttempt{moment.now, reason, why});
  };
  EXPECT_THAT(attempt(State::draining, Event::drain_ended, "DrainBlocked"), ended("DrainBlocked", "why"));
  EXPECT_THAT(attempt(State::ready, Event::gate_closed, "Paused"), ended("Paused", "why"));
  EXPECT_THAT(attempt(State::rebooting, Event::reboot_impossible, "RebootFailed"), ended("RebootFailed", "why"));
  EXPECT_THAT(attempt(State::verifying, Event::not_verified, "RolledBack"), ended("RolledBack", "why"));
  EXPECT_THAT(attempt(State::ready, Event::turn_lost, ""),
              ended("TurnLost", "the node lost its slot, so the attempt ended"));
  EXPECT_THAT(attempt(State::ready, Event::not_needed, ""), ended("NotNeeded", "no reboot is needed any more"));
  EXPECT_THAT(attempt(State::verifying, Event::verified, ""), ended("Updated", "version 1.1 runs"));
  EXPECT_THAT(attempt(State::draining, Event::drained, ""), IsEmpty()) << "goes on";
  EXPECT_THAT(attempt(State::waiting, Event::gate_closed, "Paused"), IsEmpty()) << "nothing was begun";
  Record record;
  for (int i = 0; i < 8; ++i) {
    record.state = State::draining;
    moment.cause = "DrainBlocked";
    moment.cause_message = std::string(1000, 'x') + std::to_string(i);
    record = go(std::move(record), Event::drain_ended);
  }
  EXPECT_EQ(record.attempts.size(), remembered_attempts);
  EXPECT_LE(record.attempts.back().why.size(), 260u);
}

TEST_F(Attempts, ANodeThatWaitsIsNotRememberedAsCordoned) {
  for (const State from : {State::draining, State::soaking}) {
    Record record = in(from);
    record.cordoned = true;
    EXPECT_FALSE(go(std::move(record), from == State::draining ? Event::drain_ended : Event::soaked).cordoned);
  }
}

}  // namespace
}  // namespace haulout::agent
