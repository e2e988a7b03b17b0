#include "agent/lifecycle/updating.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct UpdatingTest : ::testing::Test {
  Record go(Record record, Event event) { return advance(std::move(record), event, moment, times); }
  Record in(State state) {
    Record record;
    record.state = state;
    record.boot_id = "boot-1";
    record.began = WallTime(900s);
    return record;
  }
  UpdatingTest() {
    moment.now = WallTime(1000s);
    moment.boot_id = "boot-1";
    moment.pending = {.need = Need::no};
    moment.updates = {.need = Need::yes, .count = 7, .first = {"a", "b", "c", "d", "e"}};
    moment.cause = "UpdateFailed";
    moment.cause_message = "no space left";
  }
  Moment moment;
  LifecycleTimes times;
};

TEST_F(UpdatingTest, ATurnRecordsWhatItInstalls) {
  const Record record = go(in(State::waiting), Event::turn_taken);
  EXPECT_THAT(record.updates, ElementsAre("a", "b", "c", "d", "e", "and 2 more"));
  EXPECT_THAT(record.reasons, ElementsAre("a", "b", "c", "d", "e")) << "the reasons of the reboot that may follow";
  EXPECT_EQ(record.to, "");
}

TEST_F(UpdatingTest, WhatIsUnknownDoesNotEraseWhatIsKnown) {
  Record record;
  record.updates = {"a"};
  note_updates(record, {.need = Need::unknown});
  EXPECT_THAT(record.updates, ElementsAre("a"));
  note_updates(record, {.need = Need::no});
  EXPECT_THAT(record.updates, IsEmpty());
}

TEST_F(UpdatingTest, TheInstallationHasItsOwnTime) {
  times.update_limit = 30min;
  EXPECT_EQ(go(in(State::draining), Event::update_due).deadline, moment.now + 30min);
}

TEST_F(UpdatingTest, FailuresInARowAreCounted) {
  Record record = in(State::updating);
  record.installing = true;
  record = go(std::move(record), Event::update_failed);
  EXPECT_EQ(record.state, State::pending);
  EXPECT_EQ(record.failed_updates, 1u);
  EXPECT_FALSE(record.installing);
  EXPECT_EQ(record.not_before, moment.now + 5min) << "as after a failed drain";
  EXPECT_THAT(record.attempts, ElementsAre(PastAttempt{moment.now, "UpdateFailed", "no space left"}));
  record.state = State::updating;
  record = go(std::move(record), Event::update_given_up);
  EXPECT_EQ(record.state, State::degraded);
  EXPECT_EQ(record.failed_updates, 2u);
  EXPECT_TRUE(record.uncordon);
  EXPECT_EQ(record.cause, "UpdateFailed");
  // The node leaves `degraded` only when a person has acted. So the count of failures begins anew.
  EXPECT_EQ(go(std::move(record), Event::needed).failed_updates, 0u);
}

TEST_F(UpdatingTest, ASuccessEndsTheCount) {
  for (const Event event : {Event::installed, Event::reboot_not_needed}) {
    Record record = in(State::updating);
    record.installing = true;
    record.failed_updates = 2;
    record.service_restarts = 2;
    record.restarted = {"web.service"};
    record = go(std::move(record), event);
    EXPECT_EQ(record.failed_updates, 0u);
    EXPECT_EQ(record.service_restarts, 0u);
    EXPECT_THAT(record.restarted, IsEmpty());
    EXPECT_FALSE(record.installing);
    EXPECT_EQ(record.in_place, event == Event::reboot_not_needed);
  }
}

TEST_F(UpdatingTest, TheVersionIsKnownWhenTheImageIsInPlace) {
  Record record = in(State::updating);
  record.to = "41.1";
  EXPECT_EQ(go(record, Event::installed).to, "41.1") << "packages have no version";
  moment.pending = {.need = Need::yes, .target = "42.1"};
  EXPECT_EQ(go(record, Event::installed).to, "42.1");
}

// An image update is written before the drain, in the state `pending`. If that fails, the agent tries again later.
TEST_F(UpdatingTest, AFailureBeforeTheDrainCountsAndWaits) {
  Record record = go(in(State::pending), Event::update_failed);
  EXPECT_EQ(record.state, State::pending);
  EXPECT_EQ(record.failed_updates, 1u);
  EXPECT_EQ(record.not_before, moment.now + 5min);
  EXPECT_EQ(record.cause, "UpdateFailed");
  EXPECT_THAT(record.attempts, IsEmpty()) << "the node had no slot";
  record = go(std::move(record), Event::update_given_up);
  EXPECT_EQ(record.state, State::degraded);
  EXPECT_EQ(record.failed_updates, 2u);
  EXPECT_TRUE(record.uncordon);
}

// The node leaves the state `updating` for a reason that says nothing about the installation. That does not count as a
// failed update.
TEST_F(UpdatingTest, WhatIsNoInstallationIsNotCounted) {
  for (const Event event : {Event::emptiness_lost, Event::cordon_lost, Event::turn_lost, Event::gate_closed}) {
    Record record = in(State::updating);
    record.failed_updates = 1;
    EXPECT_EQ(go(std::move(record), event).failed_updates, 1u) << to_string(event);
  }
}

TEST_F(UpdatingTest, AMachineThatGoesDownDuringAnInstallationHasFailedOnce) {
  for (const bool installing : {true, false}) {
    Record record = in(State::updating);
    record.installing = installing;
    moment.boot_id = "boot-2";
    record = go(std::move(record), Event::boot_changed);
    EXPECT_EQ(record.state, State::updating);
    EXPECT_EQ(record.boot_id, "boot-2");
    EXPECT_EQ(record.failed_updates, installing ? 1u : 0u);
    EXPECT_FALSE(record.installing);
    EXPECT_TRUE(record.began) << "the attempt goes on";
    EXPECT_EQ(record.reboots.size(), 1u) << "it counts for the reboot limit";
    EXPECT_EQ(record.attempts.back().reason, "RebootedMeanwhile");
  }
}

TEST_F(UpdatingTest, AnUpdateInPlaceIsToldAsSuch) {
  Record record = in(State::updating);
  record = go(std::move(record), Event::reboot_not_needed);
  EXPECT_EQ(record.state, State::verifying);
  EXPECT_EQ(record.deadline, moment.now + 15min);
  EXPECT_THAT(record.reboots, IsEmpty());
  record = go(std::move(record), Event::verified);
  EXPECT_EQ(record.attempts.back().why, "updated without a reboot");
  EXPECT_EQ(record.verified_at, moment.now);
}

TEST_F(UpdatingTest, TheLastAttemptMakesTheNodeDegraded) {
  Record record;
  const Decision first = failed_update(record, 3, "UpdateFailed", "no space left");
  EXPECT_EQ(first.event, Event::update_failed);
  EXPECT_THAT(first.message, AllOf(HasSubstr("no space left"), HasSubstr("1 of 3")));
  record.failed_updates = 2;
  const Decision last = failed_update(record, 3, "UpdateBlocked", "a lock");
  EXPECT_EQ(last.event, Event::update_given_up);
  EXPECT_EQ(last.cause, "UpdateBlocked");
  EXPECT_THAT(last.message, HasSubstr("haulout.dev/request=reboot"));
  record.failed_updates = 7;  // the limit was lowered
  EXPECT_EQ(failed_update(record, 3, "UpdateFailed", "").event, Event::update_given_up);
}

TEST_F(UpdatingTest, TheRecordKeepsAllOfIt) {
  Record record = in(State::updating);
  record.updates = {"openssl 1 to 2", "and 3 more"};
  record.installing = record.in_place = true;
  record.failed_updates = 2;
  record.service_restarts = 1;
  record.restarted = {"web.service"};
  EXPECT_EQ(decode_record(encode_record(record)), record);
  // A record of an agent without --update has none of these keys, so that an older agent can read it.
  EXPECT_THAT(encode_record(Record()),
              ::testing::Not(::testing::AnyOf(HasSubstr("pdates"), HasSubstr("installing"), HasSubstr("inPlace"),
                                              HasSubstr("erviceRestarts"), HasSubstr("restarted"),
                                              HasSubstr("failedVersions"))));
}

TEST_F(UpdatingTest, WordsNameTheFirstUpdates) {
  EXPECT_EQ(words_of(moment.updates), "7 package updates wait: a, b, c, d, e and 2 more");
  EXPECT_EQ(words_of(Updates{.need = Need::yes, .count = 1, .first = {"a 1 to 2"}}),
            "1 package update waits: a 1 to 2");
  EXPECT_EQ(words_of(Updates{.need = Need::yes, .count = 1, .first = {"41 to 42"}, .target = "42"}),
            "an update of the system waits: 41 to 42");
  EXPECT_EQ(words_of(Updates{.need = Need::no}), "no update waits");
  EXPECT_EQ(with_names("installing", moment.updates), "installing: a, b, c, d, e and 2 more");
  EXPECT_EQ(with_names("installing", Updates{.problem = "apt-get failed"}), "installing");
}

}  // namespace
}  // namespace haulout::agent
