// SurgeBook: which pods are replaced in advance, when they are surged, when they may be evicted, and when they are
// given back.
#include "drain/surge_book.hpp"

#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "tests/drain/controller_book_fixture.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = SurgeBook::Step::Kind;

k8s::Rollout rolls(std::string max_surge, std::string strategy = "RollingUpdate", std::string replacement_policy = {}) {
  return {std::move(strategy), std::move(max_surge), std::move(replacement_policy)};
}

class SurgeTest : public BookTest {
 protected:
  // Makes the Deployment shop/web with Ready pods on node n1, which is drained.
  void make_surge(Surge mode, std::int32_t replicas = 1, k8s::Rollout rollout = {}, std::string annotation = "") {
    options = {};
    options.guards.surge = mode;
    book.emplace("n1");
    guard.emplace(options.guards, *book);
    surge.emplace(options, *book, rng, budgets(), [this](const k8s::Pod&, const k8s::Pod&) { return of_both; });
    tracked_.clear();
    controller.ns = "shop";
    controller.api_version = "apps/v1";
    controller.kind = "Deployment";
    controller.name = "web";
    controller.uid = "deployment-uid";
    controller.replicas = replicas;
    controller.rollout = std::move(rollout);
    book->learned("rs-uid", controller, now);
    for (std::int32_t i = 0; i < replicas; ++i) show(labelled(i));
    book->namespace_seen("shop");
    surge->facts().namespace_known("shop", std::move(annotation));
  }
  SurgeBudgets budgets() {
    return {[this] { return visible; }, [this] { return forbidden; }, [this](const k8s::Pod&) { return closed; },
            [this](const k8s::Pod&, std::int32_t) { return shared; }};
  }
  static k8s::Pod labelled(int number) {
    k8s::Pod of_deployment = pod(number);
    of_deployment.owned = true;
    of_deployment.labels = {{"app", "web"}, {"pod-template-hash", "6d4b9"}};
    return of_deployment;
  }
  static k8s::Pod surged(k8s::Pod pod, std::int64_t ready) {
    pod.labels.erase("pod-template-hash");
    pod.owned = false;
    pod.surge_mark = k8s::SurgeMark{"run", "me", {}, "n1", "6d4b9", "web-6d4b9", "rs-uid", ready};
    return pod;
  }
  // Shows the pod to the books, and to the pipeline's view of the node if it is on n1.
  void show(const k8s::Pod& seen) {
    see(seen);
    if (seen.node_name != "n1") return;
    const bool is_new = !tracked_.contains(seen.uid);
    TrackedPod& tracked = tracked_[seen.uid];
    tracked.pod = seen;
    if (is_new) {  // its turn has come, and the guard holds it
      tracked.state = PodState::parked;
      tracked.hold = TrackedPod::Hold::guard;
    }
    tracked.report.ns = seen.ns;
    tracked.report.name = seen.name;
    tracked.report.uid = seen.uid;
  }
  std::vector<TrackedPod*> leaving() {
    std::vector<TrackedPod*> all;
    for (auto& [uid, tracked] : tracked_) all.push_back(&tracked);
    return all;
  }
  std::vector<SurgeBook::Step> steps() { return surge->take_steps(leaving(), 10, true, now); }
  std::string surge_holds(const k8s::Pod& asked) {
    const auto hold = surge->held(asked, now);
    message = hold ? hold->message : "";
    return hold ? hold->reason : "";
  }
  // Carries out the step of a pod that has to be surged now, and returns the pod after that.
  k8s::Pod carry_out(const SurgeBook::Step& step) {
    const k8s::Pod after = surged(step.pod, step.mark.ready);
    surge->answered(step, after, now);
    show(after);
    return after;
  }
  std::vector<std::string> codes() {
    std::vector<DiagnosisFact> facts;
    surge->diagnose(leaving(), facts);
    std::vector<std::string> found;
    for (const DiagnosisFact& fact : facts) found.push_back(fact.code);
    message = facts.empty() ? "" : facts.front().message;
    return found;
  }

  Options options;
  Controller controller;
  bool closed = false, visible = true, forbidden = false;
  std::string shared, of_both;
  SeededRng rng{1};
  std::map<std::string, TrackedPod> tracked_;
  std::optional<SurgeBook> surge;
};

TEST_F(SurgeTest, APodIsEvictedWhenItsReplacementIsReady) {
  make_surge(Surge::all);
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].kind, Kind::surge);
  EXPECT_EQ(due[0].mark.ready, 1);
  EXPECT_THAT(steps(), IsEmpty()) << "its answer is awaited";
  const k8s::Pod old = carry_out(due[0]);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  EXPECT_THAT(message, HasSubstr("Deployment shop/web has 0 other Ready pods and needs 1"));
  show(replacement(0, false));
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, OffHoldsNothingAndDoesNothing) {
  make_surge(Surge::off, 1, {}, "true");
  EXPECT_EQ(surge_holds(labelled(0)), "");
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(SurgeTest, ADrainWithoutSurgeGivesBackWhatAnEarlierOneHasSurged) {
  make_surge(Surge::off);
  k8s::Pod old = surged(labelled(0), 1);
  show(old);
  EXPECT_EQ(surge_holds(old), "SurgeFailed");
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].kind, Kind::relabel);
  old.labels["pod-template-hash"] = "6d4b9";
  surge->answered(due[0], old, now);
  show(old);
  EXPECT_EQ(surge_holds(old), "SurgeFailed") << "its ReplicaSet has not adopted it yet";
  EXPECT_THAT(steps(), IsEmpty());
  old.owned = true;
  show(old);
  EXPECT_EQ(surge_holds(old), "") << "it is evicted as ever";
  const auto last = steps();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].kind, Kind::unmark);
}

TEST_F(SurgeTest, ADrainWithoutSurgeDoesNotWaitForeverForAnAdoption) {
  make_surge(Surge::off);
  k8s::Pod old = surged(labelled(0), 1);
  old.labels["pod-template-hash"] = "6d4b9";
  show(old);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(old), "SurgeFailed");
  now += SurgeBook::adoption_limit;
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, APodThatIsReplacedIsNotGivenBackWithoutSurge) {
  make_surge(Surge::off);
  const k8s::Pod old = surged(labelled(0), 1);
  show(old);
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(old), "");
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(SurgeTest, WhileTheMachineGoesDownNothingIsHeldAndNothingSent) {
  make_surge(Surge::all);
  options.policy.waits_for_work = false;
  EXPECT_EQ(surge_holds(labelled(0)), "");
  show(surged(labelled(0), 1));
  EXPECT_EQ(surge_holds(surged(labelled(0), 1)), "");
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(SurgeTest, NoPodIsSurgedWhileNoneMayBe) {
  make_surge(Surge::all);
  EXPECT_THAT(surge->take_steps(leaving(), 10, false, now), IsEmpty());
  EXPECT_THAT(surge->take_steps(leaving(), 0, true, now), IsEmpty());
  EXPECT_EQ(steps().size(), 1u);
}

TEST_F(SurgeTest, OnlyAsManyAsMaxSurgeAtATime) {
  make_surge(Surge::all, 4, rolls("50%"));
  const auto due = steps();
  ASSERT_EQ(due.size(), 2u);
  EXPECT_EQ(due[0].mark.ready, 4);
  const k8s::Pod first = carry_out(due[0]);
  const k8s::Pod second = carry_out(due[1]);
  EXPECT_THAT(steps(), IsEmpty());
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(first), "") << "four of five stay";
  leave(first);
  EXPECT_EQ(surge_holds(second), "AwaitingReplacement") << "of four, three would stay";
  show(replacement(1, true));
  EXPECT_EQ(surge_holds(second), "");
}

TEST_F(SurgeTest, AReplicaThatNeedsNoReplacementIsNotSurged) {
  make_surge(Surge::all);
  k8s::Pod broken = labelled(0);
  broken.ready = false;
  show(broken);
  EXPECT_EQ(surge_holds(broken), "");
  EXPECT_THAT(steps(), IsEmpty());
  controller.gone = true;
  book->learned("rs-uid", controller, now);
  EXPECT_EQ(surge_holds(labelled(0)), "") << "nothing replaces it";
}

TEST_F(SurgeTest, ADeploymentThatWasReadLongAgoIsReadBeforeItsOnlyReplicaIsSurged) {
  make_surge(Surge::single_replica, 1);
  now += ControllerBook::reread;
  EXPECT_THAT(steps(), IsEmpty());
  ASSERT_TRUE(book->next_question(now));
  EXPECT_EQ(book->next_question(now)->owner.name, "web");
  book->learned("rs-uid", controller, now);
  EXPECT_EQ(steps().size(), 1u) << "it still has one replica";
}

TEST_F(SurgeTest, FewerReplicasAreNeededAfterAScaleDown) {
  make_surge(Surge::all, 3, rolls("1"));
  const k8s::Pod old = carry_out(steps().at(0));
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  controller.replicas = 2;
  book->learned("rs-uid", controller, now);
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, APodThatAnotherDrainHasSurgedDoesNotCount) {
  make_surge(Surge::all, 2, rolls("100%"));
  const k8s::Pod here = carry_out(steps().at(0));
  k8s::Pod there = surged(labelled(1), 2);
  there.node_name = "n2";
  tracked_.erase(there.uid);
  show(there);
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(here), "AwaitingReplacement") << "the pod on n2 leaves, too";
  show(replacement(1, true));
  EXPECT_EQ(surge_holds(here), "");
}

TEST_F(SurgeTest, AModeChoosesItsPods) {
  make_surge(Surge::single_replica, 2);
  EXPECT_EQ(surge_holds(labelled(0)), "");
  EXPECT_THAT(steps(), IsEmpty());
  make_surge(Surge::single_replica, 1);
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");

  make_surge(Surge::closed_budget, 1);
  EXPECT_EQ(surge_holds(labelled(0)), "");
  closed = true;
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  const k8s::Pod old = carry_out(steps().at(0));
  closed = false;
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement") << "a pod that is surged stays so";
}

TEST_F(SurgeTest, AnAnnotationTakesPrecedence) {
  make_surge(Surge::all, 1, {}, "false");
  EXPECT_EQ(surge_holds(labelled(0)), "");
  make_surge(Surge::single_replica, 2, {}, "true");
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  k8s::Pod never = labelled(0);
  never.annotations["haulout.dev/surge"] = "false";
  EXPECT_EQ(surge_holds(never), "") << "the pod's own annotation comes before that of its namespace";
  make_surge(Surge::all, 1, {}, "maybe");
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement") << "another value counts as none";
}

TEST_F(SurgeTest, ItWaitsForWhatIsNotKnownYet) {
  make_surge(Surge::all);
  k8s::Pod elsewhere = labelled(0);
  elsewhere.claims = {"data"};
  show(elsewhere);
  EXPECT_EQ(surge_holds(elsewhere), "ControllerUnknown");
  const auto question = surge->facts().next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->claim, "data");
  surge->facts().not_answered(*question, Error(Errc::timeout, "no answer"), now);
  EXPECT_FALSE(surge->facts().next_question(now));
  EXPECT_EQ(surge->next_due(now), now + 5s);
  EXPECT_THAT(steps(), IsEmpty());
  surge->facts().claim_known(*question, "");
  EXPECT_EQ(surge_holds(elsewhere), "AwaitingReplacement");
}

TEST_F(SurgeTest, WhatCannotBeReplacedIsEvictedAndNamed) {
  const auto expect_obstacle = [&](const k8s::Pod& pod, const char* why) {
    show(pod);
    EXPECT_EQ(surge_holds(pod), "") << why;
    EXPECT_THAT(steps(), IsEmpty()) << why;
    EXPECT_THAT(codes(), ElementsAre("SurgeImpossible"));
    EXPECT_THAT(message, HasSubstr(why));
  };
  for (const auto& [rollout, why] : std::vector<std::pair<k8s::Rollout, const char*>>{
           {rolls("25%", "Recreate"), "the strategy of Deployment shop/web is Recreate"},
           {rolls("0"), "maxSurge of Deployment shop/web is 0"},
           {rolls("0%"), "maxSurge of Deployment shop/web is 0"},
           {rolls("25%", "RollingUpdate", "TerminationComplete"), "podReplacementPolicy"}}) {
    make_surge(Surge::all, 1, rollout);
    expect_obstacle(labelled(0), why);
  }
  make_surge(Surge::all);
  k8s::Pod with_port = labelled(0);
  with_port.host_ports = true;
  expect_obstacle(with_port, "ports of the node");
  make_surge(Surge::all);
  expect_obstacle(pod(0), "no label pod-template-hash");
  make_surge(Surge::all);
  k8s::Pod with_claim = labelled(0);
  with_claim.claims = {"data"};
  surge->facts().claim_known({"shop", "data"}, "only one node may mount its PersistentVolumeClaim data");
  expect_obstacle(with_claim, "only one node may mount");
  make_surge(Surge::all);
  controller.kind = "StatefulSet";
  controller.rollout.reset();
  book->learned("rs-uid", controller, now);
  expect_obstacle(labelled(0), "StatefulSet shop/web is no Deployment");
}

TEST_F(SurgeTest, AGenericEphemeralVolumeIsNoObstacle) {
  make_surge(Surge::all);
  k8s::Pod pod = labelled(0);
  pod.claims = pod.own_claims = {"web-0-scratch"};
  EXPECT_EQ(surge_holds(pod), "AwaitingReplacement");
}

TEST_F(SurgeTest, APodWhoseReplacementDoesNotComeIsGivenBackAndTriedAgainLater) {
  make_surge(Surge::all);
  carry_out(steps().at(0));
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge->next_due(now), now + 5min);
  show(homeless(0));
  now += 5min;
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].kind, Kind::relabel);
  EXPECT_THAT(steps(), IsEmpty());
  // The answer is lost. The watch shows that the label is there again.
  surge->answered(due[0], Error(Errc::timeout, "no answer"), now);
  k8s::Pod back = surged(labelled(0), 1);
  back.labels["pod-template-hash"] = "6d4b9";
  show(back);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(back), "SurgeFailed") << "its ReplicaSet has not adopted it yet";
  back.owned = true;
  show(back);
  now += 1min;
  const auto last = steps();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].kind, Kind::unmark);
  surge->answered(last[0], labelled(0), now);
  show(labelled(0));
  EXPECT_EQ(surge_holds(labelled(0)), "SurgeFailed");
  EXPECT_THAT(codes(), ElementsAre("SurgeFailed"));
  EXPECT_THAT(steps(), IsEmpty());
  now += 1h;
  EXPECT_EQ(surge_holds(labelled(0)), "SurgeFailed") << "the reason stays until it is surged again";
  const auto again = steps();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].kind, Kind::surge);
}

TEST_F(SurgeTest, TheMessageNamesWhyThereIsNoReplacement) {
  make_surge(Surge::all);
  const k8s::Pod old = carry_out(steps().at(0));
  show(homeless(0));
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  EXPECT_THAT(message, HasSubstr("pod shop/new-0 cannot be scheduled: 0/3 nodes"));
}

TEST_F(SurgeTest, APersonMayHaveAPodEvictedWithoutAReplacement) {
  make_surge(Surge::all);
  k8s::Pod old = carry_out(steps().at(0));
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  old.annotations["haulout.dev/surge"] = "false";
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, AWebhookThatRestoresTheLabelCausesOneRequestInEachPause) {
  make_surge(Surge::all);
  surge->answered(steps().at(0), labelled(0), now);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(labelled(0)), "SurgeFailed");
  EXPECT_THAT(message, HasSubstr("webhook restores the label"));
}

// The ReplicaSet lets the pod go as soon as the label is gone. So the first patch that restores it meets a newer pod.
TEST_F(SurgeTest, AWebhookThatRemovesTheMarkLeavesNoPodWithoutOwner) {
  make_surge(Surge::all);
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  k8s::Pod naked = labelled(0);
  naked.labels.erase("pod-template-hash");
  naked.owned = false;
  naked.controller.reset();
  show(naked);
  EXPECT_EQ(surge_holds(naked), "SurgeFailed") << "the watch shows it before the answer comes";
  EXPECT_THAT(steps(), IsEmpty());
  surge->answered(due[0], naked, now);
  EXPECT_EQ(surge_holds(naked), "SurgeFailed");
  EXPECT_THAT(message, HasSubstr("removes the annotation"));
  const auto undo = steps();
  ASSERT_EQ(undo.size(), 1u);
  EXPECT_EQ(undo[0].kind, Kind::relabel);
  EXPECT_THAT(k8s::relabel_patch(undo[0].pod), HasSubstr(R"("pod-template-hash":"6d4b9")"));
  surge->answered(undo[0], status_error(409, "Conflict"), now);
  naked.resource_version = "2";
  show(naked);
  EXPECT_THAT(steps(), IsEmpty());
  now += 2s;
  const auto again = steps();
  ASSERT_EQ(again.size(), 1u) << "the label has to come back";
  k8s::Pod back = naked;
  back.labels["pod-template-hash"] = "6d4b9";
  surge->answered(again[0], back, now);
  show(back);
  EXPECT_EQ(surge_holds(back), "SurgeFailed") << "its ReplicaSet has not adopted it yet";
  show(labelled(0));
  EXPECT_EQ(surge_holds(labelled(0)), "SurgeFailed") << "the pause";
  EXPECT_THAT(steps(), IsEmpty());
  now += 5min;
  ASSERT_EQ(steps().size(), 1u);
}

TEST_F(SurgeTest, APersonWhoRemovesTheMarkHasThePodGivenBack) {
  make_surge(Surge::all);
  k8s::Pod naked = carry_out(steps().at(0));
  naked.surge_mark.reset();
  naked.controller.reset();
  show(naked);
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].kind, Kind::relabel);
  EXPECT_EQ(surge_holds(naked), "SurgeFailed");
  EXPECT_THAT(message, HasSubstr("was removed from the pod"));
}

// A rollout that is stuck, or a pod that crashes again and again.
TEST_F(SurgeTest, ADeploymentWithFewerReadyPodsThanReplicasNeedsNoMoreThanBefore) {
  make_surge(Surge::all, 4, rolls("1"));
  k8s::Pod broken = labelled(3);
  broken.ready = false;
  broken.node_name = "n2";
  tracked_.erase(broken.uid);
  show(broken);
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].mark.ready, 3);
  const k8s::Pod old = carry_out(due[0]);
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(old), "");
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(old), "") << "also later: its budget may open only now";
  broken.ready = true;
  show(broken);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(old), "") << "four other pods are Ready";
}

TEST_F(SurgeTest, APodThatBecomesReadyMeanwhileIsNoReplacement) {
  make_surge(Surge::all, 3, rolls("1"));
  k8s::Pod slow = labelled(2);
  slow.ready = false;
  slow.node_name = "n2";
  tracked_.erase(slow.uid);
  show(slow);
  const k8s::Pod old = carry_out(steps().at(0));
  slow.ready = true;
  show(slow);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, ASecondPodThatIsSurgedDoesNotCountTheReplacementOfTheFirst) {
  make_surge(Surge::all, 3, rolls("2"));
  TrackedPod& last = tracked_.at(labelled(2).uid);
  last.hold = TrackedPod::Hold::policy;
  TrackedPod& second = tracked_.at(labelled(1).uid);
  second.state = PodState::queued;
  carry_out(steps().at(0));
  show(replacement(0, true));
  second.state = PodState::parked;
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].mark.ready, 3) << "four are Ready, but one of them is the replacement of the first";
}

// The server refuses a signal as long as the budget is exhausted, so its pod most likely stays.
TEST_F(SurgeTest, APodWhoseSignalIsInFlightCountsAsOneThatIsThere) {
  for (const bool replaced : {false, true}) {
    make_surge(Surge::all, 4, rolls("2"));
    for (int i = 0; i < 4; ++i) {
      k8s::Pod older = labelled(i);
      older.created = wall - 1h;
      show(older);
    }
    k8s::Pod old = surged(tracked_.at(labelled(0).uid).pod, 3);
    old.surge_mark->at = wall - 60s;
    show(old);
    tracked_.at(labelled(2).uid).hold = tracked_.at(labelled(3).uid).hold = TrackedPod::Hold::policy;
    k8s::Pod newer = replacement(0, replaced);
    newer.created = wall - 58s;
    show(newer);
    EXPECT_EQ(surge_holds(old), "") << "its mark asks for no more";
    TrackedPod& asked = tracked_.at(old.uid);
    asked.state = PodState::in_flight;
    asked.request_out = asked.signal = true;
    guard->leaving(old, EvictionGuard::Leaves::yes);
    const auto due = steps();
    ASSERT_EQ(due.size(), 1u);
    EXPECT_EQ(due[0].pod.uid, labelled(1).uid);
    EXPECT_EQ(due[0].mark.ready, 4) << "Ready before the first was surged, whether its replacement is Ready or not";
  }
}

TEST_F(SurgeTest, APodWhoseTurnHasNotComeIsNotSurged) {
  make_surge(Surge::all);
  tracked_.begin()->second.state = PodState::queued;
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(SurgeTest, APodThatNobodyLetsGoIsGivenBack) {
  make_surge(Surge::all);
  const k8s::Pod old = carry_out(steps().at(0));
  show(replacement(0, true));
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge->next_due(now), now + SurgeBook::refusal_limit);
  now += SurgeBook::refusal_limit;
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].kind, Kind::relabel);
}

TEST_F(SurgeTest, TheTimeCountsFromWhenTheReplacementWasLastReady) {
  make_surge(Surge::all);
  carry_out(steps().at(0));
  show(replacement(0, true));
  EXPECT_THAT(steps(), IsEmpty());
  now += 10min;
  EXPECT_THAT(steps(), IsEmpty());
  show(replacement(0, false));
  EXPECT_THAT(steps(), IsEmpty());
  now += 5min;
  EXPECT_EQ(steps().size(), 1u);
}

TEST_F(SurgeTest, WithoutItsReplicaSetAPodStaysAsItIs) {
  make_surge(Surge::all);
  const k8s::Pod old = carry_out(steps().at(0));
  EXPECT_THAT(steps(), IsEmpty());
  now += 5min;
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  surge->orphaned(due[0]);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_THAT(codes(), ElementsAre("SurgeFailed"));
  EXPECT_THAT(message, HasSubstr("does not exist any more"));
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, APodThatNothingAdoptsIsEvictedWhenOthersAreReady) {
  make_surge(Surge::all);
  k8s::Pod back = carry_out(steps().at(0));
  back.labels["pod-template-hash"] = "6d4b9";
  show(back);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(back), "SurgeFailed");
  show(replacement(0, true));
  EXPECT_EQ(surge_holds(back), "");
}

TEST_F(SurgeTest, AfterAPodWasGivenBackTheSurplusPodGoesFirst) {
  make_surge(Surge::closed_budget, 2, rolls("1"));
  closed = true;
  tracked_.at(labelled(1).uid).hold = TrackedPod::Hold::policy;
  k8s::Pod back = carry_out(steps().at(0));
  k8s::Pod surplus = replacement(0, false);
  surplus.owned = true;
  show(surplus);
  EXPECT_THAT(steps(), IsEmpty());
  now += 5min;
  surge->answered(steps().at(0), back, now);
  back = labelled(0);
  back.surge_mark = k8s::SurgeMark{"run", "me", {}, "n1", "6d4b9", "web-6d4b9", "rs-uid", 2};
  show(back);
  closed = false;
  surge->answered(steps().at(0), labelled(0), now);
  show(labelled(0));
  EXPECT_EQ(surge_holds(labelled(1)), "SurgeFailed");
  EXPECT_THAT(message, HasSubstr("until Deployment shop/web has 2 pods again"));
  book->pod_changed(surplus.uid, nullptr, now, wall);
  EXPECT_EQ(surge_holds(labelled(1)), "SurgeFailed");
  EXPECT_THAT(message, HasSubstr("until the disruption controller has counted the pods of Deployment shop/web again"));
  now = surge->next_due(now);
  EXPECT_EQ(surge_holds(labelled(1)), "");
}

TEST_F(SurgeTest, ABudgetThatCountsOtherControllersMustNotOpen) {
  make_surge(Surge::all);
  shared = "shop/all";
  EXPECT_EQ(surge_holds(labelled(0)), "");
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_THAT(codes(), ElementsAre("SurgeImpossible"));
  EXPECT_THAT(message, HasSubstr("PodDisruptionBudget shop/all counts pods of other controllers"));
  // With two replicas, one of them keeps its owner.
  make_surge(Surge::all, 2, rolls("100%"));
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u);
  carry_out(due[0]);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_THAT(codes(), IsEmpty());
}

// The watch of the node's pods and the watch of the namespace's pods report at different times that two pods have no
// owner any more.
TEST_F(SurgeTest, TheLastPodWithAnOwnerIsNotSurgedWhileOneWatchIsBehind) {
  make_surge(Surge::all, 3, rolls("100%"));
  shared = "shop/all";
  const auto due = steps();
  ASSERT_EQ(due.size(), 2u);
  for (const SurgeBook::Step& step : due) {
    const k8s::Pod released = surged(step.pod, step.mark.ready);
    surge->answered(step, released, now);
    tracked_.at(released.uid).pod = released;
  }
  EXPECT_THAT(steps(), IsEmpty());
  for (const SurgeBook::Step& step : due) see(surged(step.pod, step.mark.ready));
  EXPECT_THAT(steps(), IsEmpty());
}

// The surged pod is the only one that is left after a scale-down, so a budget of several controllers does not count its
// Deployment. Other pods of that budget wait until it does, and until the disruption controller has counted again.
TEST_F(SurgeTest, OtherPodsOfABudgetWaitWhileItDoesNotCountADeployment) {
  make_surge(Surge::all, 2);
  const k8s::Pod other = owned_by(a_pod("db-0"), "apps/v1", "StatefulSet", "db", "db-uid");
  of_both = "shop/all";
  const k8s::Pod old = carry_out(steps().at(0));
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_EQ(surge_holds(other), "") << "the second pod has its owner";
  controller.replicas = 1;
  book->learned("rs-uid", controller, now);
  tracked_.erase(labelled(1).uid);
  book->pod_changed(labelled(1).uid, nullptr, now, wall);
  EXPECT_EQ(surge_holds(other), "AwaitingReplacement");
  EXPECT_THAT(message, HasSubstr("PodDisruptionBudget shop/all does not count the Deployment"));
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  EXPECT_THAT(message, HasSubstr("0 other Ready pods and needs 1")) << "it waits for its own replacement";
  EXPECT_THAT(steps(), IsEmpty());
  k8s::Pod next = replacement(0, true);
  next.owned = true;
  show(next);
  EXPECT_EQ(surge_holds(old), "");
  EXPECT_EQ(surge_holds(other), "AwaitingReplacement");
  now = surge->next_due(now);
  EXPECT_EQ(surge_holds(other), "");
}

// A budget blocks the surged pod, so the pipeline does not ask for its hold.
TEST_F(SurgeTest, TheNumberOfReplicasOfASurgedPodIsReadAgain) {
  make_surge(Surge::all, 2);
  const k8s::Pod old = carry_out(steps().at(0));
  now += ControllerBook::reread;
  EXPECT_FALSE(book->next_question(now));
  EXPECT_THAT(steps(), IsEmpty());
  const auto question = book->next_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->owner.uid, "deployment-uid");
}

// After the answer the drain looks at its pods again before the watch shows what a webhook has done to one of them.
TEST_F(SurgeTest, AWebhookThatRemovesTheMarkIsNotForgottenBeforeTheWatchShowsIt) {
  make_surge(Surge::all);
  k8s::Pod naked = labelled(0);
  naked.labels.erase("pod-template-hash");
  surge->answered(steps().at(0), naked, now);
  EXPECT_THAT(steps(), IsEmpty());
  naked.owned = false;
  naked.controller.reset();
  show(naked);
  const auto undo = steps();
  ASSERT_EQ(undo.size(), 1u);
  EXPECT_EQ(undo[0].kind, Kind::relabel);
}

TEST_F(SurgeTest, WhileBudgetsCannotBeSeenNoOnlyPodIsSurged) {
  make_surge(Surge::all);
  visible = false;
  EXPECT_EQ(surge_holds(labelled(0)), "ControllerUnknown");
  EXPECT_EQ(message, "waiting until PodDisruptionBudgets can be read (--surge)");
  EXPECT_THAT(codes(), IsEmpty());
  forbidden = true;
  make_surge(Surge::closed_budget);
  EXPECT_THAT(codes(), ElementsAre("RightMissing"));
  EXPECT_THAT(message, HasSubstr("grant verbs list and watch on resource poddisruptionbudgets"));
  make_surge(Surge::all);
  EXPECT_EQ(surge_holds(labelled(0)), "");
  EXPECT_THAT(codes(), ElementsAre("RightMissing", "SurgeImpossible"));
  make_surge(Surge::all, 2);
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
}

// The second of two replicas does not come.
TEST_F(SurgeTest, TheOnlyPodUnderASharedBudgetWaitsForAnotherOneForATime) {
  make_surge(Surge::all, 2);
  shared = "shop/all";
  tracked_.erase(labelled(1).uid);
  book->pod_changed(labelled(1).uid, nullptr, now, wall);
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  EXPECT_THAT(message, HasSubstr("waiting for another pod of Deployment shop/web (--surge): PodDisruptionBudget"));
  EXPECT_THAT(steps(), IsEmpty());
  show(replacement(0, false));
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  EXPECT_THAT(message, HasSubstr("at most 1 at a time"));
  book->pod_changed(replacement(0, false).uid, nullptr, now, wall);
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  now = surge->next_due(now);
  EXPECT_EQ(surge_holds(labelled(0)), "") << "it is evicted as without surge";
}

TEST_F(SurgeTest, AMarkThatCannotBeRemovedHoldsNoOtherPodForEver) {
  make_surge(Surge::off, 2);
  k8s::Pod back = labelled(0);
  back.surge_mark = k8s::SurgeMark{"run", "me", {}, "n1", "6d4b9", "web-6d4b9", "rs-uid", 2};
  show(back);
  k8s::Pod surplus = replacement(0, false);
  surplus.owned = true;
  show(surplus);
  ASSERT_EQ(steps().size(), 1u);
  EXPECT_EQ(surge_holds(labelled(1)), "SurgeFailed");
  for (int i = 0; i < 3; ++i) {
    now += 50s;
    EXPECT_THAT(steps(), IsEmpty());
  }
  EXPECT_EQ(surge_holds(labelled(1)), "");
}

TEST_F(SurgeTest, TheTimeOfAMarkedPodRunsAlsoWhileNothingMayBeSent) {
  make_surge(Surge::off);
  const k8s::Pod old = surged(labelled(0), 1);
  show(old);
  EXPECT_THAT(surge->take_steps(leaving(), 0, false, now), IsEmpty());
  EXPECT_EQ(surge_holds(old), "SurgeFailed");
  now += SurgeBook::adoption_limit;
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, APodOfAnotherNamespaceIsNoReplacement) {
  make_surge(Surge::all);
  const k8s::Pod old = carry_out(steps().at(0));
  k8s::Pod foreign = replacement(0, true);
  foreign.ns = "other";
  see(foreign);
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
}

TEST_F(SurgeTest, ANamespaceThatMayNotBeReadForbidsToSurgeItsPods) {
  make_surge(Surge::all);
  surge.emplace(options, *book, rng, budgets(), nullptr);
  EXPECT_EQ(surge_holds(labelled(0)), "ControllerUnknown");
  const auto question = surge->facts().next_question(now);
  ASSERT_TRUE(question);
  const Error forbidden = status_error(403, "Forbidden");
  surge->facts().not_answered(*question, forbidden, now);
  EXPECT_EQ(surge_holds(labelled(0)), "ControllerUnknown") << "one 403 proves nothing";
  surge->facts().not_answered(*question, forbidden, now);
  EXPECT_EQ(surge_holds(labelled(0)), "");
  EXPECT_THAT(codes(), ElementsAre("RightMissing"));
}

TEST_F(SurgeTest, AReplacementThatIsReadyIsNotGivenBackForLackOfTime) {
  make_surge(Surge::all);
  const k8s::Pod old = carry_out(steps().at(0));
  show(replacement(0, true));
  EXPECT_THAT(steps(), IsEmpty());
  now += 59min;
  EXPECT_THAT(steps(), IsEmpty()) << "it waits for its budget";
  EXPECT_EQ(surge_holds(old), "");
}

TEST_F(SurgeTest, ThePodsOfADrainThatWasKilledAreTakenOver) {
  make_surge(Surge::all, 2, rolls("1"));
  const k8s::Pod old = surged(labelled(0), 2);
  show(old);
  EXPECT_THAT(steps(), IsEmpty()) << "the place is taken";
  EXPECT_EQ(surge_holds(old), "AwaitingReplacement");
  now += 5min;
  const auto due = steps();
  ASSERT_EQ(due.size(), 1u) << "its time counts from when this drain has seen it";
  EXPECT_EQ(due[0].kind, Kind::relabel);
}

TEST_F(SurgeTest, AMissingRightIsNamedAndTheRequestRepeatedWithPauses) {
  make_surge(Surge::all);
  const std::string refusal = R"(pods "web-0" is forbidden: User "jane" cannot patch resource "pods")";
  surge->answered(steps().at(0), status_error(403, "Forbidden", "", "", refusal), now);
  EXPECT_EQ(surge_holds(labelled(0)), "SurgeFailed");
  EXPECT_THAT(codes(), ElementsAre("RightMissing"));
  EXPECT_THAT(message, HasSubstr("grant verb patch on resource pods"));
  EXPECT_THAT(steps(), IsEmpty());
  now = surge->next_due(now);
  EXPECT_EQ(steps().size(), 1u);
}

TEST_F(SurgeTest, AWebhookThatDeniesThePatchIsNoMissingRight) {
  make_surge(Surge::all);
  surge->answered(steps().at(0), status_error(403, "Forbidden", "", "", "admission webhook \"a.b\" denied it"), now);
  EXPECT_THAT(codes(), ElementsAre("SurgeFailed"));
  EXPECT_THAT(message, HasSubstr("denied it"));
}

TEST_F(SurgeTest, AConflictIsTriedAgainSoon) {
  make_surge(Surge::all);
  surge->answered(steps().at(0), status_error(409, "Conflict"), now);
  EXPECT_EQ(surge_holds(labelled(0)), "AwaitingReplacement");
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_LE(surge->next_due(now), now + 1s);
}

TEST_F(SurgeTest, PodsThatPolicyHoldsAreNotSurged) {
  make_surge(Surge::all);
  TrackedPod& tracked = tracked_.begin()->second;
  tracked.state = PodState::parked;
  tracked.hold = TrackedPod::Hold::policy;
  EXPECT_THAT(steps(), IsEmpty());
  tracked.hold = TrackedPod::Hold::guard;
  EXPECT_EQ(steps().size(), 1u);
}

TEST(SurgePlacesTest, PercentagesAreRoundedUpAndAtLeastOneIsAllowed) {
  Controller deployment;
  deployment.kind = "Deployment";
  struct Row {
    const char* max_surge;
    std::int32_t replicas;
    std::size_t places;
  };
  for (const Row& row : {Row{"25%", 1, 1}, Row{"25%", 4, 1}, Row{"25%", 5, 2}, Row{"100%", 3, 3}, Row{"2", 10, 2},
                         Row{"0", 10, 1}, Row{"nonsense", 10, 1}, Row{"150%", 2, 3}}) {
    deployment.rollout = rolls(row.max_surge);
    deployment.replicas = row.replicas;
    EXPECT_EQ(surge_places(deployment), row.places) << row.max_surge << " of " << row.replicas;
  }
}

}  // namespace
}  // namespace haulout::drain::testing
