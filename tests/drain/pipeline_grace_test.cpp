// The pipeline with a grace period of its own, and pods that already terminate with a longer one.
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::PipelineTest;
using testing::status_error;
using testing::terminating;
using ::testing::UnorderedElementsAre;

// kubectl's --grace-period also applies to pods that another client deleted with a longer grace period.
TEST_F(PipelineTest, AGracePeriodThatWasAskedForReachesPodsThatTerminateAlready) {
  make({.max_places = 1, .grace_seconds = 10});
  auto longer = terminating(a_pod("longer")), unset = terminating(a_pod("unset")), equal = terminating(a_pod("equal"));
  longer.deletion_grace_seconds = 3600;
  unset.deletion_grace_seconds.reset();
  equal.deletion_grace_seconds = 10;
  plan({longer, unset, equal, a_pod("stays")});
  EXPECT_THAT(take(), UnorderedElementsAre("longer", "unset", "stays")) << "they take no place";
  EXPECT_THAT(take(), IsEmpty()) << "while the answer is out";
  accept(longer);
  EXPECT_THAT(take(), IsEmpty()) << "the watch has not shown it yet";
  refuse(unset, Error(Errc::reset, "lost"));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_GT(pipeline->next_wake(now), now);
  now += 2min;
  EXPECT_THAT(take(), ElementsAre("unset")) << "tried again";
  refuse(unset, status_error(405, "MethodNotAllowed"));
  now += 2min;
  EXPECT_THAT(take(), IsEmpty()) << "and given up for good";
  gone(longer);
  EXPECT_EQ(tracked(longer).report.outcome, PodOutcome::evicted);
}

// Another client deletes the pod while the drain's eviction is in flight. The watch event arrives before the answer.
// The drain requests the shorter grace period, but not before the shortest pause between two requests.
TEST_F(PipelineTest, P10_WhatWasJustAskedForIsNotShortenedInTheSameMoment) {
  make({.grace_seconds = 10});
  const auto deleted = a_pod("deleted");
  plan({deleted});
  ASSERT_THAT(take(), ElementsAre("deleted"));
  auto longer = terminating(deleted);
  longer.deletion_grace_seconds = 3600;
  pipeline->pod_changed(longer, now);
  refuse(deleted, status_error(400, "BadRequest"));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(pipeline->next_wake(now), now + Backoff::minimum);
  now = pipeline->next_wake(now);
  EXPECT_THAT(take(), ElementsAre("deleted"));
}

// Only one eviction request at a time is in flight for each budget. When the answer about pod a arrives, the request
// for pod b is in flight. So that answer must not let the request for pod c be sent.
TEST_F(PipelineTest, AnAnswerAboutAShorterGracePeriodFreesNoLane) {
  make({.grace_seconds = 10});
  const auto budget = testing::a_budget("web", 3);
  pipeline->budget_changed(budget.uid, &budget, now);
  const auto pods = pods_named({"a", "b", "c"});
  plan(pods);
  EXPECT_THAT(take(), ElementsAre("a"));
  refuse(pods[0], testing::closed_budget);
  EXPECT_THAT(take(), ElementsAre("b"));
  auto deleted = terminating(pods[0]);
  deleted.deletion_grace_seconds = 3600;
  pipeline->pod_changed(deleted, now);
  now += Backoff::minimum;
  EXPECT_THAT(take(), ElementsAre("a"));
  accept(pods[0]);
  EXPECT_THAT(take(), IsEmpty()) << "one request for each budget, and that of b is out";
  accept(pods[1]);
  EXPECT_THAT(take(), ElementsAre("c"));
}

TEST_F(PipelineTest, WithoutAGracePeriodNoneIsShortened) {
  make();
  auto longer = terminating(a_pod("longer"));
  longer.deletion_grace_seconds = 3600;
  plan({longer});
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PipelineTest, AForcedPodVanishesBeforeTheAnswerComes) {
  make({.grace_seconds = 0});
  auto dead = terminating(a_pod("dead"));
  dead.deletion_grace_seconds = 30;
  plan({dead});
  EXPECT_THAT(take(), ElementsAre("dead"));
  gone(dead);
  EXPECT_EQ(tracked(dead).report.outcome, PodOutcome::evicted);
  accept(dead);
  EXPECT_THAT(events, Not(Contains("evicted dead"))) << "it has vanished by then";
  EXPECT_TRUE(pipeline->clear());
}

}  // namespace
}  // namespace haulout::drain
