// ControllerBook: owners that are created, deleted or changed, and pods that do not count as replacements.
#include "tests/drain/controller_book_fixture.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;

Controller top(const std::string& name, const std::string& uid, std::int32_t replicas) {
  Controller controller;
  controller.ns = "shop";
  controller.api_version = "apps/v1";
  controller.kind = "Deployment";
  controller.name = name;
  controller.uid = uid;
  controller.replicas = replicas;
  return controller;
}

Controller not_known(Controller controller) {
  controller.replicas.reset();
  controller.unknown = "the server said no";
  return controller;
}

Controller gone_controller(Controller controller) {
  controller = not_known(std::move(controller));
  controller.gone = true;
  return controller;
}

TEST_F(BookTest, AnOwnerThatChangesHandsTakesItsCountsAlong) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  now += ControllerBook::reread;
  book->learned("rs-uid", top("web", "other-uid", 4), now);
  EXPECT_FALSE(book->next_question(now)) << "nobody asks for the sake of the old one";
  EXPECT_EQ(next_due(now), TimePoint::max());
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  see(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, APodThatAnotherControllerHasAdoptedCountsForThatOneOnly) {
  make(at_most(1), 2);
  book->learned("other-uid", top("other", "other-uid", 1), now);
  const auto adopted = owned_by(pod(0), "apps/v1", "ReplicaSet", "other", "other-uid");
  see(adopted);
  EXPECT_EQ(book->tally_of(*book->group_of(pod(1))).ready, 1u);
  EXPECT_EQ(book->tally_of(*book->group_of(adopted)).ready, 1u);
}

TEST_F(BookTest, TheAnswerAboutOnePodIsNotThatAboutAllOthers) {
  make(at_most(1));
  const auto stranger = owned_by(pod(8), "apps/v1", "ReplicaSet", "other", "other-uid");
  book->learned("other-uid", top("other", "other-uid", 1), now);
  see(stranger);
  EXPECT_EQ(held(pod(0)), "");
  EXPECT_EQ(held(pod(1)), "") << "none has left yet";
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  auto broken = pod(2);
  broken.ready = false;
  EXPECT_EQ(held(broken), "") << "it is not Ready, so its eviction makes no Ready pod missing";
  auto bold = pod(2);
  bold.annotations[std::string(max_unavailable_annotation)] = "2";
  EXPECT_EQ(held(bold), "");
  EXPECT_EQ(held(pod(2)), "BlockedByControllerBudget");
  EXPECT_EQ(held(stranger), "") << "its controller lacks nothing";
  EXPECT_EQ(held(pod(3)), "BlockedByControllerBudget");
}

// A UID is found in its namespace only: a pod may name the controller of another one.
TEST_F(BookTest, AControllerIsKnownByItsNamespaceAndItsUid) {
  make(at_most(1));
  auto stranger = pod(0);
  EXPECT_NE(book->group_of(stranger), nullptr);
  stranger.ns = "other";
  EXPECT_EQ(book->group_of(stranger), nullptr);
}

// A pod leaves, and then its owner is adopted by another controller. The book has not counted whether the pod was
// replaced, so the pod takes nothing from the new controller's limit.
TEST_F(BookTest, WhatLeftAnotherOwnerBeforeItWasAdoptedTakesNothing) {
  for (const bool known : {true, false}) {
    make(at_most(1));
    if (!known) learn("rs-uid", {});
    EXPECT_EQ(held(pod(0)), "");
    const auto orphan = owned_by(pod(9), "apps/v1", "ReplicaSet", "old", "old-uid");
    book->learned("old-uid", top("old", "old-uid", 1), now);
    leave(orphan);
    const Controller web = top("web", "deployment-uid", 4);
    book->learned("old-uid", known ? web : not_known(web), now);
    EXPECT_EQ(held(pod(0)), "") << (known ? "" : "how many replicas are wanted is not known");
  }
}

TEST_F(BookTest, AReplicaSetThatIsLeftToItselfIsCountedByItself) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  now += ControllerBook::reread;
  auto question = book->next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->owner.uid, "deployment-uid");
  book->learned("deployment-uid", gone_controller(top("web", "deployment-uid", 4)), now);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget") << "what is known holds until its ReplicaSet was asked";
  question = book->next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->owner.uid, "rs-uid");
  book->learned("rs-uid", top("web-12345", "rs-uid", 4), now);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  EXPECT_FALSE(book->next_question(now));
  book->learned("rs-uid", gone_controller(top("web-12345", "rs-uid", 4)), now);
  EXPECT_EQ(held(pod(1)), "") << "nobody replaces its pods";
  EXPECT_FALSE(book->next_question(now + 1h));
}

TEST_F(BookTest, WhatIsReadAgainUnderItsOwnNameKeepsItsReplicaSets) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  learn("deployment-uid", 3);
  EXPECT_EQ(held(pod(1)), "") << "three are wanted, three are Ready";
}

TEST_F(BookTest, AnAnswerWithLessThanIsKnownIsIgnored) {
  make(at_most(1));
  const Controller web = top("web", "deployment-uid", 4);
  EXPECT_TRUE(book->is_answer("rs-uid", web));
  EXPECT_FALSE(book->is_answer("rs-uid", not_known(web)));
  EXPECT_FALSE(book->is_answer("rs-uid", not_known(top("web-12345", "rs-uid", 4))));
  EXPECT_FALSE(book->is_answer("stranger", not_known(web)));
  Controller below = top("web-777", "stranger", 4);
  below.in_place_of = "deployment-uid";
  EXPECT_FALSE(book->is_answer("stranger", below)) << "it is one of web, whose pods it would take away";
  below.in_place_of = "above-uid";
  EXPECT_TRUE(book->is_answer("stranger", below));
  EXPECT_FALSE(book->is_answer("stranger", not_known(top("web-777", "stranger", 4)))) << "it may be one of web";
  EXPECT_TRUE(book->is_answer("stranger", not_known(top("clones", "clones-uid", 4)))) << "it is another's";
  const auto late = owned_by(pod(5), "apps/v1", "ReplicaSet", "late-1", "late-uid");
  EXPECT_EQ(held(late), "ControllerUnknown");
  EXPECT_TRUE(book->is_answer("late-uid", not_known(top("late-1", "late-uid", 4)))) << "its pod has to go";
  EXPECT_FALSE(book->questions().forbidden("shop/late-uid"));
  EXPECT_TRUE(book->questions().forbidden("shop/late-uid")) << "an authorizer is believed the second time";
  EXPECT_FALSE(book->questions().forbidden("shop/stranger"));
  EXPECT_FALSE(book->questions().forbidden("shop/stranger"));
}

TEST_F(BookTest, AnUnknownOwnerIsLookedUpBeforeItsPodsAreCounted) {
  make(at_most(1));
  see(owned_by(replacement(0, true), "apps/v1", "ReplicaSet", "web-77777", "new-rs-uid"));
  EXPECT_EQ(held(pod(0)), "ControllerUnknown");
  ASSERT_TRUE(book->next_question(now));
  book->not_answered({{"apps/v1", "ReplicaSet", "new-rs", "new-rs-uid", true}, "shop"}, now);
  EXPECT_FALSE(book->next_question(now));
  EXPECT_EQ(next_due(now), now + ControllerBook::retry);
  EXPECT_TRUE(book->next_question(now + ControllerBook::retry)) << "its pods may say nothing more";
  learn("new-rs-uid", 5);
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget") << "what was there before replaces nothing";
}

TEST_F(BookTest, PodsOfAScaleUpAreNoReplacements) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  for (int i = 0; i < 3; ++i) see(replacement(i, false));
  const auto question = book->next_question(now + ControllerBook::reread_soon);
  ASSERT_TRUE(question) << "more than are wanted have come";
  learn(question->owner.uid, 6);
  for (int i = 0; i < 2; ++i) see(replacement(i, true));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  see(replacement(2, true));
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, MissingReplacementsDoNotCountAfterAScaleDown) {
  make(at_most(1), 8);
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  for (int i = 5; i < 8; ++i) gone(pod(i));
  learn("deployment-uid", 5);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  see(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "");
  // One of the old pods fails. Then the number of Ready pods alone does not show any more that enough pods are left,
  // but the result must stay the same.
  k8s::Pod failing = pod(4);
  failing.ready = false;
  see(failing);
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, APodThatBecomesReadyAgainIsNoReplacement) {
  k8s::Pod broken = begin_with_a_broken_pod(4);
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  broken.ready = true;
  see(broken);
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
  see(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "");
}

TEST_F(BookTest, ALatePodThatLeavesCountsOnce) {
  make(at_most(2));
  learn("deployment-uid", std::nullopt);
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  gone(pod(0));
  see(replacement(0, true));
  EXPECT_EQ(held(replacement(0, true)), "");
  leave(replacement(0, true));
  EXPECT_EQ(held(pod(1)), "") << "one is missing, not two";
  leave(pod(1));
  EXPECT_EQ(held(pod(2)), "BlockedByControllerBudget");
}

TEST_F(BookTest, APodWhoseAnswerWasLostMayBeAskedAgain) {
  make(at_most(1));
  EXPECT_EQ(held(pod(0)), "");
  leave(pod(0));
  EXPECT_EQ(held(pod(0)), "");
  EXPECT_EQ(held(pod(1)), "BlockedByControllerBudget");
}

TEST_F(BookTest, PodsOfAKindThatMayNotReplaceThemAreNotLimited) {
  make(at_most(1));
  Controller workflow = not_known(top("build", "workflow-uid", 0));
  workflow.cannot_scale = true;
  book->learned("workflow-uid", workflow, now);
  const auto step = [](int number) {
    return owned_by(pod(number), "argoproj.io/v1alpha1", "Workflow", "build", "workflow-uid");
  };
  for (int i = 5; i < 7; ++i) see(step(i));
  EXPECT_EQ(held(step(5)), "");
  leave(step(5));
  EXPECT_EQ(held(step(6)), "");
  k8s::Pod careful = step(6);
  careful.annotations[std::string(max_unavailable_annotation)] = "1";
  EXPECT_EQ(held(careful), "BlockedByControllerBudget");
}

TEST_F(BookTest, AnAnnotationOfAPodThatMakesNoSenseLeavesTheWordToItsController) {
  Controller controller = top("web", "deployment-uid", 4);
  controller.annotations = {{std::string(max_unavailable_annotation), "50%"},
                            {std::string(single_replica_annotation), "block"}};
  k8s::Pod asked = pod(0);
  asked.annotations = {{std::string(max_unavailable_annotation), "many"},
                       {std::string(single_replica_annotation), "perhaps"}};
  EXPECT_EQ(max_unavailable_override(asked, controller), (Share{50, true}));
  EXPECT_EQ(single_replica_override(asked, controller), SingleReplica::block);
}

}  // namespace
}  // namespace haulout::drain::testing
