#include "k8s/watch_pacing.hpp"

#include <gtest/gtest.h>

#include "k8s/status.hpp"
#include "tests/k8s/fixtures.hpp"

namespace haulout::k8s {
namespace {

using namespace std::chrono_literals;
using Kind = WatchStep::Kind;

const BackoffOptions backoff{800ms, 2.0, 30s, BackoffOptions::Jitter::full};
const TimePoint t0{1h};

Error reset() {
  return Error(Errc::reset, "reset");
}
Error forbidden() {
  return error_of_status(fixtures::rbac);
}
Error unauthorized() {
  return error_of_status(fixtures::unauthorized);
}
Error expired() {
  return error_of_status(fixtures::expired_list);
}
Error unreadable() {
  return Error(Errc::decode, "not JSON");
}
Error throttled() {
  auto error = error_of_status(fixtures::shutting_down);
  error.retry_after = 7s;
  return error;
}

class PacingTest : public ::testing::Test {
 protected:
  SeededRng rng{1};
  WatchPacing watches{backoff};
  ListPacing lists{backoff};
  WatchStep after(WatchEnd end, TimePoint now = t0) { return watches.after(end, now, rng); }
};

TEST_F(PacingTest, WhatFollowsAWatch) {
  struct Case {
    const char* name;
    WatchEnd end;
    Kind kind;
    Duration at_least, at_most;
  };
  const std::vector<Case> cases = {
      {"a good watch ended", {true, 240s, {}, false}, Kind::watch, 0s, 0s},
      {"ended after 3 s", {true, 3s, {}, false}, Kind::watch, 10ms, 800ms},
      {"ended at once", {true, 0s, {}, false}, Kind::watch, 10ms, 800ms},
      {"connection lost", {true, 100s, reset(), false}, Kind::watch, 10ms, 800ms},
      {"never opened", {false, 0s, reset(), false}, Kind::watch, 10ms, 800ms},
      {"nobody there", {false, 0s, Error(Errc::unreachable, "refused"), false}, Kind::list, 10ms, 800ms},
      {"silence", {true, 100s, Error(Errc::timeout, "t"), true}, Kind::list, 10ms, 800ms},
      {"place lost", {true, 0s, expired(), false}, Kind::list, 10ms, 800ms},
      {"place lost, by status", {false, 0s, expired(), false}, Kind::list, 10ms, 800ms},
      {"garbage", {true, 50s, unreadable(), false}, Kind::list, 10ms, 800ms},
      {"throttled", {false, 0s, throttled(), false}, Kind::watch, 7s, 8400ms},
      {"unauthorized", {false, 0s, unauthorized(), false}, Kind::list, 10ms, 800ms},
      {"first denial", {false, 0s, forbidden(), false}, Kind::watch, 1s, 1s},
  };
  for (const auto& c : cases) {
    WatchPacing fresh(backoff);
    const auto step = fresh.after(c.end, t0, rng);
    EXPECT_EQ(step.kind, c.kind) << c.name;
    EXPECT_GE(step.delay, c.at_least) << c.name;
    EXPECT_LE(step.delay, c.at_most) << c.name;
  }
}

TEST_F(PacingTest, ShortWatchesBackOffUntilOneLives) {
  Duration longest{};
  for (int i = 0; i < 40; ++i) longest = std::max(longest, after({true, 3s, {}, false}).delay);
  EXPECT_GT(longest, 10s);
  EXPECT_LE(longest, 30s);
  after({true, 60s, reset(), false});
  EXPECT_LE(after({true, 60s, reset(), false}).delay, 800ms);
}

TEST_F(PacingTest, TwoDenialsASecondApartMeanPolling) {
  EXPECT_EQ(after({false, 0s, forbidden(), false}).kind, Kind::watch);
  EXPECT_EQ(after({false, 0s, forbidden(), false}, t0 + 165ms).kind, Kind::watch);
  EXPECT_EQ(after({false, 0s, forbidden(), false}, t0 + 1s).kind, Kind::poll);
}

TEST_F(PacingTest, ADenialThatPassedIsForgotten) {
  after({false, 0s, forbidden(), false});
  after({true, 5s, reset(), false}, t0 + 10s);
  EXPECT_EQ(after({false, 0s, forbidden(), false}, t0 + 20s).kind, Kind::watch);

  // Two denials with another failure in between do not count as lasting: they may come from two servers that start one
  // after the other.
  WatchPacing interrupted(backoff);
  interrupted.after({false, 0s, forbidden(), false}, t0, rng);
  interrupted.after({false, 0s, reset(), false}, t0 + 1s, rng);
  EXPECT_EQ(interrupted.after({false, 0s, forbidden(), false}, t0 + 20s, rng).kind, Kind::watch);
}

TEST_F(PacingTest, AViewThatCannotBeWatchedIsListedNowAndThen) {
  std::vector<Kind> kinds;
  for (int i = 0; i < 6; ++i) kinds.push_back(after({false, 0s, reset(), false}).kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::watch, Kind::watch, Kind::list, Kind::watch, Kind::watch, Kind::list}));
}

TEST_F(PacingTest, TheFirstListGivesUpOnlyOnWhatCannotHeal) {
  struct Case {
    const char* name;
    Error error;
    bool gives_up;
  };
  const std::vector<Case> cases = {
      {"reset", reset(), false},
      {"503", throttled(), false},
      {"one denial", forbidden(), false},
      {"unreadable once", unreadable(), false},
      {"expired", expired(), false},
      {"401", unauthorized(), true},
      {"404", error_of_status(fixtures::pod_gone), true},
      {"no credentials", Error(Errc::unavailable, "no token"), true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(!ListPacing(backoff).after(c.error, false, t0, rng), c.gives_up) << c.name;
    EXPECT_TRUE(ListPacing(backoff).after(c.error, true, t0, rng)) << c.name;
  }
}

TEST_F(PacingTest, ListsDeniedTwiceOrUnreadableThreeTimes) {
  EXPECT_GE(lists.after(forbidden(), false, t0, rng), 1s);
  EXPECT_TRUE(lists.after(forbidden(), false, t0 + 500ms, rng));
  EXPECT_FALSE(lists.after(forbidden(), false, t0 + 1s, rng));
  EXPECT_TRUE(lists.after(forbidden(), true, t0 + 1h, rng)) << "once synced there is always a next try";

  ListPacing interrupted(backoff);
  interrupted.after(forbidden(), false, t0, rng);
  interrupted.after(reset(), false, t0 + 1s, rng);
  EXPECT_TRUE(interrupted.after(forbidden(), false, t0 + 2s, rng));

  ListPacing garbage(backoff);
  EXPECT_TRUE(garbage.after(unreadable(), false, t0, rng));
  EXPECT_TRUE(garbage.after(unreadable(), false, t0, rng));
  EXPECT_FALSE(garbage.after(unreadable(), false, t0, rng));
}

TEST_F(PacingTest, ListsComeNotBackBeforeRetryAfter) {
  const auto delay = lists.after(throttled(), false, t0, rng);
  ASSERT_TRUE(delay);
  EXPECT_GE(*delay, 7s);
}

}  // namespace
}  // namespace haulout::k8s
