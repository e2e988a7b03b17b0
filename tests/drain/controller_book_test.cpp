// ControllerBook and ControllerGuard: how many pods of a controller may be evicted, and which objects are looked up for
// that.
#include "tests/drain/controller_book_fixture.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct ShareCase {
  const char* text;
  std::optional<std::int32_t> replicas;
  std::size_t allowed;  // 0: the text is invalid
};
class ShareTest : public ::testing::TestWithParam<ShareCase> {};
TEST_P(ShareTest, IsRoundedDownAndAtLeastOne) {
  const auto share = parse_share(GetParam().text);
  ASSERT_EQ(share.has_value(), GetParam().allowed > 0) << GetParam().text;
  if (!share) return;
  EXPECT_EQ(share_of(*share, GetParam().replicas), GetParam().allowed);
  EXPECT_EQ(to_string(*share), GetParam().text);
}
INSTANTIATE_TEST_SUITE_P(All, ShareTest,
                         ::testing::Values(ShareCase{"25%", 8, 2}, ShareCase{"25%", 7, 1}, ShareCase{"25%", 1, 1},
                                           ShareCase{"25%", 0, 1}, ShareCase{"25%", std::nullopt, 1},
                                           ShareCase{"100%", 5, 5}, ShareCase{"3", 1, 3}, ShareCase{"3", 100, 3},
                                           ShareCase{"100%", 2147483647, 2147483647}, ShareCase{"0", 5, 0},
                                           ShareCase{"0%", 5, 0}, ShareCase{"101%", 5, 0}, ShareCase{"", 5, 0},
                                           ShareCase{"%", 5, 0}, ShareCase{"-1", 5, 0}, ShareCase{"1.5", 5, 0},
                                           ShareCase{"25 %", 5, 0}, ShareCase{"99999999999", 5, 0}));

TEST_F(BookTest, WithoutOptionsItBlocksNothingAndSendsNoRequest) {
  begin(Guards());
  EXPECT_EQ(held(pod(0)), "");
  EXPECT_EQ(guard->judge({}, pod(0)).verdict, Verdict::evict);
  EXPECT_FALSE(book->next_question(now));
  EXPECT_EQ(next_due(now), TimePoint::max());
}

TEST_F(BookTest, AsManyGoAsMayBeWithoutReplacement) {
  make(at_most(50, true));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "");
  leave(pod(1));
  EXPECT_EQ(held(pod(2)), "BlockedByControllerBudget");
  EXPECT_THAT(message, HasSubstr("Deployment shop/web may lack at most 2 pods of its 4 "
                                 "(--max-unavailable-per-controller=50%), and lacks 2 now"));
  see(replacement(0, false));
  EXPECT_EQ(held(pod(2)), "BlockedByControllerBudget") << "it is not Ready";
  see(replacement(0, true));
  EXPECT_EQ(held(pod(2)), "");
}

TEST_F(BookTest, AnEvictionThatWasRefusedTakesNothing) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  book->leaving(pod(0), false);
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, APodThatHasVanishedStillLacksAReplacement) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  gone(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
}

// Another client deleted pod 0 after this node's preflight and before its drain. Its replacement has been Ready for
// long. So pod 0 does not count against the limit.
TEST_F(BookTest, APodThatWentBeforeWeCountedTakesNothing) {
  for (const std::optional<std::int32_t> replicas : {std::optional(3), std::optional<std::int32_t>()}) {
    begin(at_most(1));
    learn("rs-uid", replicas);
    see(pod(0));
    leave(pod(0));
    gone(pod(0));
    see(pod(1));
    see(replacement(0, true));
    k8s::Pod broken = replacement(1, false);
    broken.created = wall - 10min - 1s;
    see(broken);
    book->namespace_seen("shop");
    EXPECT_EQ(held(pod(1)), "");
    leave(pod(1));
    EXPECT_EQ(held(replacement(0, true)), "BlockedByControllerBudget");
  }
}

TEST_F(BookTest, AReplacementThatFailsCountsNoMore) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  see(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "");
  see(replacement(0, false));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
}

TEST_F(BookTest, APodThatMerelyFailsElsewhereIsNotOurs) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  see(replacement(0, true));
  k8s::Pod failing = pod(3);
  failing.ready = false;
  see(failing);
  EXPECT_EQ(held(pod(1)), "");
}

// Two nodes are drained at the same time, and pods of one controller on both are replaced. The replacement of a pod of
// the other node does not count as the replacement of this node's pod.
TEST_F(BookTest, AReplacementForAPodThatLeftElsewhereIsNotOurs) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  gone(pod(3));
  see(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  see(replacement(1, true));
  EXPECT_EQ(held(pod(1)), "");
}

// Another node was drained before, and a replacement for one of its pods is not Ready yet. Until the replacement is
// Ready, no Ready pod of this node may be evicted.
TEST_F(BookTest, WhatIsStartingWhenWeBeginCounts) {
  begin(at_most(1));
  learn("rs-uid", 2);
  see(pod(0));
  see(replacement(0, false));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(0)), "BlockedByControllerBudget");
  see(replacement(0, true));
  EXPECT_EQ(held(pod(0)), "");
}

TEST_F(BookTest, APodThatHasNotBeenReadyForLongDoesNotCount) {
  begin(at_most(1));
  learn("rs-uid", 2);
  see(pod(0));
  k8s::Pod broken = replacement(0, false);
  broken.created = wall - 10min - 1s;
  see(broken);
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(0)), "");
}

// A recovered pod counts as if it had always been Ready. After its eviction it lacks a replacement like any other pod.
TEST_F(BookTest, WhatHasRecoveredLacksAReplacementOnceItLeaves) {
  begin(at_most(1));
  learn("rs-uid", 2);
  k8s::Pod sick = pod(0);
  sick.ready = false;
  sick.created = wall - 10min - 1s;
  see(sick);
  see(pod(1));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(1)), "");
  sick.ready = true;
  see(sick);
  EXPECT_EQ(held(sick), "");
  leave(sick);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
}

TEST_F(BookTest, NobodyWaitsForReplacementsByAControllerThatIsGone) {
  make(at_most(1));
  Controller gone;
  gone.ns = "shop";
  gone.uid = "gone-uid";
  gone.gone = true;
  book->learned("gone-uid", gone, now);
  const auto one = owned_by(pod(5), "apps/v1", "ReplicaSet", "gone", "gone-uid");
  leave(one);
  EXPECT_EQ(held(owned_by(pod(6), "apps/v1", "ReplicaSet", "gone", "gone-uid")), "");
}

// A pod that is not Ready may be evicted although the limit is reached. It is more likely to recover on another node
// than on the cordoned one.
TEST_F(BookTest, APodThatIsNotReadyMayBeEvicted) {
  begin(at_most(1));
  learn("rs-uid", 2);
  k8s::Pod starting = pod(0);
  starting.ready = false;
  see(starting);
  see(pod(1));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  EXPECT_EQ(held(starting), "");
  leave(starting);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  see(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, AScaleDownLowersTheLimit) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  learn("rs-uid", 3);
  EXPECT_EQ(held(pod(1)), "") << "three are wanted, three are Ready";
}

// The Deployment has a broken pod when the drain begins. A scale-down deletes that pod and one replacement that is
// missing. The three pods that are wanted now are those that are Ready.
TEST_F(BookTest, AScaleDownThatDeletesABrokenPodMakesUpForNothingElse) {
  k8s::Pod broken = begin_with_a_broken_pod(5);
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  gone(broken);
  learn("rs-uid", 3);
  EXPECT_EQ(held(pod(1)), "") << "three are wanted, three are Ready";
  leave(pod(1));
  EXPECT_EQ(held(pod(2)), "BlockedByControllerBudget");
}

// When the Deployment is scaled down, its controller already misses the evicted pod, so it deletes no other one.
TEST_F(BookTest, AScaleDownThatKeepsABrokenPodMakesUpForNothing) {
  k8s::Pod broken = begin_with_a_broken_pod(4);
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  learn("rs-uid", 3);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget") << "three are wanted, two are Ready";
  broken.ready = true;
  see(broken);
  EXPECT_EQ(held(pod(1)), "");
}

// A scale-down deletes a broken pod of the drained node.
TEST_F(BookTest, AScaleDownThatDeletesABrokenPodOfThisNodeMakesUpForNothingElse) {
  k8s::Pod broken = begin_with_a_broken_pod(4);
  EXPECT_EQ(held(pod(0)), "");
  for (const k8s::Pod& deleted : {broken, pod(2)}) {
    leave(deleted);
    gone(deleted);
  }
  learn("rs-uid", 2);
  EXPECT_EQ(held(pod(0)), "") << "two are wanted, two are Ready";
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
}

// While somebody else has uncordoned the node, the replacement of a broken pod becomes Ready on it.
TEST_F(BookTest, WhatCameForABrokenPodLacksAReplacementOnceItLeaves) {
  begin(at_most(1));
  learn("rs-uid", 2);
  see(pod(0));
  k8s::Pod broken = pod(1);
  broken.ready = false;
  broken.created = wall - 10min - 1s;
  see(broken);
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(0)), "");
  for (const k8s::Pod& evicted : {broken, pod(0)}) {
    leave(evicted);
    gone(evicted);
  }
  for (const int came : {2, 3}) see(pod(came));
  EXPECT_EQ(held(pod(2)), "");
  leave(pod(2));
  EXPECT_EQ(held(pod(3)), "BlockedByControllerBudget");
}

// While somebody else has uncordoned the node, a scale-up puts pods on it. They replace no other pods.
TEST_F(BookTest, PodsThatAScaleUpAddedLackAReplacementOnceTheyLeave) {
  begin(at_most(2));
  learn("rs-uid", 1);
  see(pod(0));
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(0)), "");
  learn("rs-uid", 3);
  for (const int added : {1, 2}) see(pod(added));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "");
  leave(pod(1));
  EXPECT_EQ(held(pod(2)), "BlockedByControllerBudget");
  for (const int one : {0, 1}) see(replacement(one, true));
  EXPECT_EQ(held(pod(2)), "");
}

// The look-up of an old ReplicaSet has failed for good, so nobody knows that its pods are of the Deployment.
TEST_F(BookTest, AReplicaSetThatMayBeOfAHeldDeploymentIsReadAgain) {
  begin(at_most(1));
  learn("rs-uid", 2);
  see(pod(0));
  k8s::Pod old = owned_by(pod(1), "apps/v1", "ReplicaSet", "web-old", "old-uid");
  book->learned("old-uid", nothing_known_of(*old.controller, "shop", "400 Bad Request"), now);
  see(old);
  book->namespace_seen("shop");
  EXPECT_FALSE(book->next_question(now + ControllerBook::reread));
  EXPECT_EQ(held(pod(0)), "BlockedByControllerBudget");
  now += ControllerBook::reread;
  std::vector<std::string> asked;
  while (const auto question = book->next_question(now)) {
    asked.push_back(question->owner.uid);
    if (asked.size() == 2) break;
    book->not_answered(*question, now);
  }
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre("deployment-uid", "old-uid"));
  learn("old-uid", 2);
  EXPECT_EQ(held(pod(0)), "");
}

TEST_F(BookTest, ARollOutGivesItAnotherReplicaSet) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  k8s::Pod rolled = owned_by(replacement(0, true), "apps/v1", "ReplicaSet", "web-77777", "new-rs-uid");
  see(rolled);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  const auto question = book->next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->owner.name, "web-77777");
  learn("new-rs-uid", 4);
  EXPECT_EQ(held(pod(1)), "");
  EXPECT_FALSE(book->next_question(now));
}

TEST_F(BookTest, OtherPeoplesReplicaSetsAreNotAskedFor) {
  make(at_most(1));
  see(owned_by(replacement(0, true), "apps/v1", "ReplicaSet", "db-77777", "db-uid"));
  see(owned_by(replacement(1, true), "apps/v1", "StatefulSet", "web-db", "sts-uid"));
  EXPECT_FALSE(book->next_question(now));
}

TEST_F(BookTest, WhatHoldsIsReadAgain) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_FALSE(book->next_question(now + 1h)) << "it holds nothing";
  // A controller that holds a pod is read again after `reread`. The question names the top-level controller.
  const auto unknown = owned_by(pod(5), "apps/v1", "ReplicaSet", "late-1", "late-uid");
  EXPECT_EQ(held(unknown), "ControllerUnknown");
  ASSERT_TRUE(book->next_question(now));
  Controller late;
  late.ns = "shop";
  late.kind = "Deployment";
  late.name = "late";
  late.uid = "late-deployment";
  late.replicas = 1;
  book->learned("late-uid", late, now);
  leave(unknown);
  EXPECT_EQ(held(owned_by(pod(6), "apps/v1", "ReplicaSet", "late-1", "late-uid")), "BlockedByControllerBudget");
  EXPECT_EQ(next_due(now), now + ControllerBook::reread);
  EXPECT_FALSE(book->next_question(now + ControllerBook::reread - 1s));
  const auto again = book->next_question(now + ControllerBook::reread);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->owner.uid, "late-deployment") << "the one at the top: its ReplicaSet may be gone";
}

TEST_F(BookTest, ItHoldsUntilTheNamespaceWasSeen) {
  begin(at_most(1));
  learn("rs-uid", 1);
  see(pod(0));
  EXPECT_EQ(held(pod(0)), "ControllerUnknown");
  book->namespace_seen("shop");
  EXPECT_EQ(held(pod(0)), "");
}

TEST_F(BookTest, JobsDaemonSetsAndPodsOfNobodyAreNotGuarded) {
  make(at_most(1));
  k8s::Pod bare = pod(7);
  bare.controller.reset();
  k8s::Pod finished = pod(8);
  finished.phase = k8s::PodPhase::succeeded;
  for (const auto& free : {owned_by(pod(5), "batch/v1", "Job", "backup", "job-uid"),
                           owned_by(pod(6), "apps/v1", "DaemonSet", "logs", "ds-uid"), bare, finished}) {
    EXPECT_FALSE(is_guarded(free));
    EXPECT_EQ(held(free), "");
  }
  EXPECT_FALSE(book->next_question(now));
}

TEST_F(BookTest, AnAnnotationTakesThePlaceOfTheOption) {
  make(at_most(1), 4, {{std::string(max_unavailable_annotation), "50%"}});
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "") << "the controller says 50%";
  k8s::Pod strict = pod(1);
  strict.annotations[std::string(max_unavailable_annotation)] = "1";
  EXPECT_EQ(held(strict), "BlockedByControllerBudget") << "the pod's own comes first";
  strict.annotations[std::string(max_unavailable_annotation)] = "many";
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(strict), "BlockedByControllerBudget") << "one that makes no sense counts for nothing";
}

}  // namespace
}  // namespace haulout::drain::testing
