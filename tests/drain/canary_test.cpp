// ControllerGuard: canaries and single replicas. A canary is the first pod of a controller to leave: the others wait
// until its replacement has found a node.
#include "tests/drain/controller_book_fixture.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(BookTest, TheFirstOneIsTheCanary) {
  make(canary(30s));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "AwaitingReplacement");
  EXPECT_EQ(until, now + 30s);
  see(replacement(0, false));
  EXPECT_EQ(held(pod(1)), "") << "it has found a node";
}

TEST_F(BookTest, ACanaryThatNobodyReplacesHoldsForItsTime) {
  make(canary(30s));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "AwaitingReplacement");
  now += 30s;
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, AReplacementWithoutANodeHoldsForAsLongAsThatLasts) {
  make(canary(30s));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "AwaitingReplacement");
  now += 1s;
  see(homeless(0));
  EXPECT_EQ(held(pod(1)), "AwaitingReplacement");
  EXPECT_EQ(until, now + 30s);
  EXPECT_TRUE(guard->unschedulable(now).empty());
  EXPECT_EQ(next_due(now + 29s), now + 30s);
  now += 30s;
  EXPECT_EQ(held(pod(1)), "ReplacementUnschedulable");
  EXPECT_THAT(message, HasSubstr("pod shop/new-0, cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu."));
  ASSERT_EQ(guard->unschedulable(now).size(), 1u);
  EXPECT_EQ(guard->unschedulable(now).front().controller->text(), "Deployment shop/web");
  now += 24h;
  EXPECT_EQ(held(pod(1)), "ReplacementUnschedulable");
  see(replacement(0, false));
  EXPECT_EQ(held(pod(1)), "");
  EXPECT_TRUE(guard->unschedulable(now).empty());
}

TEST_F(BookTest, AReplacementWithoutANodeIsToldWithABudgetOfTheControllerAlone) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  now += 1s;
  see(homeless(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  EXPECT_TRUE(guard->unschedulable(now + 29s).empty());
  EXPECT_EQ(next_due(now + 29s), now + 30s);
  now += 30s;
  ASSERT_EQ(guard->unschedulable(now).size(), 1u);
  EXPECT_EQ(guard->unschedulable(now).front().pod, "shop/new-0");
  see(replacement(0, true));
  EXPECT_TRUE(guard->unschedulable(now).empty());
}

TEST_F(BookTest, APodThatWasUnschedulableBeforeTheDrainIsNoReplacement) {
  begin(canary(30s));
  learn("rs-uid", 3);
  for (int i = 0; i < 2; ++i) see(pod(i));
  see(homeless(0));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  see(replacement(1, false));
  EXPECT_EQ(held(pod(1)), "");
}

// A pod was terminating before the drain began. Its replacement may be older than the drain's first list, so it says
// nothing about replacements of other pods.
TEST_F(BookTest, APodThatSomebodyDeletesBeforeTheFirstEvictionIsTheCanary) {
  make(canary(30s));
  guard->leaving(pod(0), EvictionGuard::Leaves::yes);
  EXPECT_EQ(held(pod(1)), "AwaitingReplacement");
  see(replacement(0, false));
  EXPECT_EQ(held(pod(1)), "") << "it has found a node";
}

TEST_F(BookTest, APodThatWasTerminatingBeforeTheDrainIsNoCanary) {
  begin(canary(30s));
  learn("rs-uid", 3);
  for (int i = 0; i < 3; ++i) see(pod(i));
  see(terminating(pod(0)));
  leave(pod(0));
  see(replacement(0, false));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(1)), "");
  leave(pod(1));
  EXPECT_EQ(held(pod(2)), "AwaitingReplacement");
  EXPECT_EQ(until, now + 30s);
  book->leaving(pod(1), false);
  EXPECT_EQ(held(pod(1)), "") << "refused: there was no canary";
}

// A pod that was terminating before the drain may be the canary of an earlier run, which an agent that has restarted
// does not know. So no other pod is evicted while its replacement has found no node.
TEST_F(BookTest, NoPodFollowsWhileTheReplacementOfAnEarlierCanaryIsUnschedulable) {
  begin(canary(30s));
  learn("rs-uid", 3);
  for (int i = 0; i < 2; ++i) see(pod(i));
  see(terminating(pod(0)));
  leave(pod(0));
  see(homeless(0));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(1)), "AwaitingReplacement");
  EXPECT_EQ(next_due(now), now + 30s);
  now += 30s;
  EXPECT_EQ(held(pod(1)), "ReplacementUnschedulable");
  EXPECT_THAT(guard->unschedulable(now), ::testing::SizeIs(1));
  see(replacement(0, false));
  EXPECT_EQ(held(pod(1)), "");
}

struct SingleCase {
  const char* what;
  SingleReplica option;
  std::optional<std::int32_t> replicas;
  const char* of_controller;
  const char* of_pod;
  Verdict verdict;
};
class SingleTest : public BookTest, public ::testing::WithParamInterface<SingleCase> {};
TEST_P(SingleTest, IsJudged) {
  const auto& c = GetParam();
  begin(single(c.option));
  learn("rs-uid", c.replicas, {{std::string(single_replica_annotation), c.of_controller}});
  k8s::Pod asked = pod(0);
  if (*c.of_pod) asked.annotations[std::string(single_replica_annotation)] = c.of_pod;
  const Decision decision = guard->judge({}, asked);
  EXPECT_EQ(decision.verdict, c.verdict) << c.what;
  EXPECT_EQ(decision.reason, c.verdict == Verdict::evict ? "" : "SingleReplica") << c.what;
}
INSTANTIATE_TEST_SUITE_P(
    All, SingleTest,
    ::testing::Values(SingleCase{"allowed", SingleReplica::allow, 1, "", "", Verdict::evict},
                      SingleCase{"off: nobody looks", SingleReplica::allow, 1, "block", "block", Verdict::evict},
                      SingleCase{"warned of", SingleReplica::warn, 1, "", "", Verdict::evict},
                      SingleCase{"blocked", SingleReplica::block, 1, "", "", Verdict::refuse},
                      SingleCase{"two", SingleReplica::block, 2, "", "", Verdict::evict},
                      SingleCase{"scaled to nothing", SingleReplica::block, 0, "", "", Verdict::evict},
                      SingleCase{"unknown", SingleReplica::block, std::nullopt, "", "", Verdict::evict},
                      SingleCase{"its controller allows", SingleReplica::block, 1, "allow", "", Verdict::evict},
                      SingleCase{"its controller blocks", SingleReplica::warn, 1, "block", "", Verdict::refuse},
                      SingleCase{"the pod comes first", SingleReplica::block, 1, "block", "allow", Verdict::evict},
                      SingleCase{"the pod comes first", SingleReplica::warn, 1, "allow", "block", Verdict::refuse},
                      SingleCase{"nonsense counts for nothing", SingleReplica::block, 1, "perhaps", "",
                                 Verdict::refuse}));

// When the Deployment is deleted, the ReplicaSet may be orphaned and may have another number of replicas. So the book
// asks for the ReplicaSet again.
TEST_F(BookTest, OneWhoseDeploymentIsGoneIsLookedUpByItsReplicaSet) {
  begin(single(SingleReplica::block));
  learn("rs-uid", 1);
  EXPECT_EQ(guard->judge({}, pod(0)).verdict, Verdict::refuse);
  Controller gone;
  gone.ns = "shop";
  gone.uid = "deployment-uid";
  gone.gone = true;
  book->learned("deployment-uid", gone, now);
  const auto question = book->next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->owner.uid, "rs-uid");
}

TEST_F(BookTest, OneThatWasNotLookedUpWaitsForThat) {
  begin(single(SingleReplica::block));
  EXPECT_EQ(guard->judge({}, pod(0)).verdict, Verdict::park);
  const auto question = book->next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->owner.uid, "rs-uid");
  book->not_answered({{"apps/v1", "ReplicaSet", "rs", "rs-uid", true}, "shop"}, now);
  EXPECT_FALSE(book->next_question(now));
  EXPECT_EQ(next_due(now), now + ControllerBook::retry);
  EXPECT_TRUE(book->next_question(now + ControllerBook::retry));
  learn("rs-uid", 2);
  EXPECT_EQ(guard->judge({}, pod(0)).verdict, Verdict::evict);
}

TEST_F(BookTest, WhatOtherFiltersHaveDecidedStands) {
  begin(single(SingleReplica::block));
  learn("rs-uid", 1);
  Decision skipped;
  skipped.verdict = Verdict::skip;
  EXPECT_EQ(guard->judge(skipped, pod(0)).verdict, Verdict::skip);
  EXPECT_EQ(guard->judge({}, terminating(pod(0))).verdict, Verdict::evict);
  EXPECT_EQ(guard->judge({}, owned_by(pod(0), "batch/v1", "Job", "backup", "job-uid")).verdict, Verdict::evict);
}

}  // namespace
}  // namespace haulout::drain::testing
