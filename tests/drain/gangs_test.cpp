// Recognition of gangs, and what a drain says about them.
#include "drain/gangs.hpp"

#include <gmock/gmock.h>

#include "drain/broken_gangs.hpp"
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {

using testing::a_pod;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::terminating;
using Labels = std::map<std::string, std::string>;

k8s::Pod of_job_set(const std::string& pod_name, const std::string& job_set = "train") {
  k8s::Pod pod = a_pod(pod_name);
  pod.labels = {{"jobset.sigs.k8s.io/jobset-name", job_set}};
  return pod;
}

k8s::Pod of_group(const std::string& pod_name, const std::string& group, const std::string& size = "") {
  k8s::Pod pod = a_pod(pod_name);
  pod.labels = {{"leaderworkerset.sigs.k8s.io/name", "serve"}, {"leaderworkerset.sigs.k8s.io/group-index", group}};
  if (!size.empty()) pod.annotations = {{"leaderworkerset.sigs.k8s.io/size", size}};
  return pod;
}

TEST(Gangs, APodTellsItsGang) {
  struct Row {
    const char* what;
    const char* pod_group;
    Labels labels;
    const char* gang;  // empty: none
  };
  const Row rows[] = {
      {"no gang", "", {{"app", "web"}}, ""},
      {"PodGroup", "train", {}, "PodGroup shop/train"},
      {"JobSet", "", {{"jobset.sigs.k8s.io/jobset-name", "train"}}, "JobSet shop/train"},
      {"empty name", "", {{"jobset.sigs.k8s.io/jobset-name", ""}}, ""},
      {"LeaderWorkerSet",
       "",
       {{"leaderworkerset.sigs.k8s.io/name", "serve"}, {"leaderworkerset.sigs.k8s.io/group-index", "3"}},
       "LeaderWorkerSet shop/serve group 3"},
      {"no group", "", {{"leaderworkerset.sigs.k8s.io/name", "serve"}}, ""},
      {"no name", "", {{"leaderworkerset.sigs.k8s.io/group-index", "3"}}, ""},
      {"JobSet with a PodGroup", "half", {{"jobset.sigs.k8s.io/jobset-name", "train"}}, "JobSet shop/train"},
      {"LeaderWorkerSet with a PodGroup",
       "half",
       {{"leaderworkerset.sigs.k8s.io/name", "serve"}, {"leaderworkerset.sigs.k8s.io/group-index", "3"}},
       "LeaderWorkerSet shop/serve group 3"},
      {"PodGroup, and half of the labels of a LeaderWorkerSet",
       "train",
       {{"leaderworkerset.sigs.k8s.io/name", "serve"}},
       "PodGroup shop/train"},
  };
  for (const Row& row : rows) {
    k8s::Pod pod = a_pod("a");
    pod.pod_group = row.pod_group;
    pod.labels = row.labels;
    const auto gang = gang_of(pod);
    EXPECT_EQ(gang ? gang->text() : "", row.gang) << row.what;
  }
}

TEST(Gangs, GangsOfOtherNamespacesKindsAndGroupsAreOthers) {
  k8s::Pod elsewhere = of_job_set("a");
  elsewhere.ns = "ml";
  k8s::Pod of_pod_group = a_pod("a");
  of_pod_group.pod_group = "train";
  EXPECT_EQ(gang_of(of_job_set("a")), gang_of(of_job_set("b")));
  for (const k8s::Pod& other : {elsewhere, of_pod_group, of_job_set("a", "test")})
    EXPECT_NE(gang_of(of_job_set("a")), gang_of(other)) << gang_of(other)->text();
  EXPECT_NE(gang_of(of_group("a", "0")), gang_of(of_group("b", "1")));
}

TEST(Gangs, APodThatHasFinishedOrTerminatesIsNoMember) {
  k8s::Pod pod = of_job_set("a");
  EXPECT_TRUE(gang_of(pod));
  EXPECT_FALSE(gang_of(terminating(pod)));
  pod.phase = k8s::PodPhase::pending;
  EXPECT_TRUE(gang_of(pod)) << "it starts";
  for (const auto phase : {k8s::PodPhase::succeeded, k8s::PodPhase::failed}) {
    pod.phase = phase;
    EXPECT_FALSE(gang_of(pod));
    EXPECT_TRUE(named_gang(pod));
  }
}

TEST(Gangs, OnlyALeaderWorkerSetTellsItsSize) {
  EXPECT_EQ(size_of_gang(of_group("a", "0", "4")), 4u);
  for (const char* garbage : {"", "0", "many", "-1", "4 "})
    EXPECT_EQ(size_of_gang(of_group("a", "0", garbage)), std::nullopt) << garbage;
  k8s::Pod pod = of_job_set("a");
  pod.annotations = {{"leaderworkerset.sigs.k8s.io/size", "4"}};
  EXPECT_EQ(size_of_gang(pod), std::nullopt);
}

class GangsOfADrain : public testing::PipelineTest {
 protected:
  std::vector<DiagnosisFact> facts() const {
    std::vector<DiagnosisFact> found;
    diagnose_gangs(pipeline->leaving(), pipeline->pods(), policy, found);
    return found;
  }
  bool is_broken(const k8s::Pod& pod) const { return is_in_broken_gang(pod, pipeline->pods()); }
  void passes() { now += std::chrono::seconds(1); }
};

TEST_F(GangsOfADrain, EachGangThatTheDrainBreaksIsSaidOnce) {
  make({.max_places = 0});
  const auto a = of_job_set("a"), b = of_job_set("b"), other = of_job_set("c", "test");
  k8s::Pod done = of_job_set("done");
  done.phase = k8s::PodPhase::succeeded;
  plan({a, b, other, a_pod("web"), done, terminating(of_job_set("going"))});
  ASSERT_EQ(facts().size(), 2u);
  const DiagnosisFact test = facts()[0], train = facts()[1];
  EXPECT_EQ(train.code, "GangBroken");
  EXPECT_EQ(train.subject, "JobSet shop/train");
  EXPECT_THAT(train.message, HasSubstr("pods shop/a, shop/b are members; their eviction stops the whole group"));
  EXPECT_THAT(train.scope.pods, ElementsAre(a.uid, b.uid));
  EXPECT_FALSE(train.scope.holds) << "only advice";
  EXPECT_EQ(train.hold, Duration::zero());
  EXPECT_EQ(test.subject, "JobSet shop/test");
  EXPECT_THAT(train.message, HasSubstr("--gangs=wait"));
  EXPECT_THAT(test.message, HasSubstr("pod shop/c is a member; its eviction stops the whole group"));
}

TEST_F(GangsOfADrain, ManyPodsAreCounted) {
  make({.max_places = 0});
  std::vector<k8s::Pod> pods;
  for (const char* name : {"a", "b", "c", "d", "e"}) pods.push_back(of_job_set(name));
  plan(pods);
  EXPECT_THAT(facts().at(0).message, HasSubstr("pods shop/a, shop/b, shop/c and 2 more are members"));
}

TEST_F(GangsOfADrain, NothingIsSaidOfMembersThatTheDrainDoesNotEvict) {
  policy.gangs = Treatment::park;
  make({.max_places = 0});
  plan({of_job_set("a")});
  EXPECT_THAT(facts(), IsEmpty());
}

TEST_F(GangsOfADrain, TheWayOutIsWhatHelps) {
  policy.rules = {parse_pod_rule("jobset.sigs.k8s.io/jobset-name=last").value()};
  for (const Treatment gangs : {Treatment::evict, Treatment::park, Treatment::refuse}) {
    policy.gangs = gangs;
    make({.max_places = 0});
    plan({of_job_set("a")});
    EXPECT_THAT(facts().at(0).message, AllOf(HasSubstr("change the rule jobset.sigs.k8s.io/jobset-name=last"),
                                             Not(HasSubstr("--gangs=wait"))));
  }
  policy.rules.clear();
  policy.waits_for_work = false;
  make({.max_places = 0});
  plan({of_job_set("a")});
  EXPECT_THAT(facts().at(0).message, AllOf(HasSubstr("the machine goes down"), Not(HasSubstr("--gangs"))));
}

TEST_F(GangsOfADrain, NothingIsSaidOfAGangThatIsBrokenAlready) {
  make({.max_places = 0});
  const auto a = of_job_set("a"), b = of_job_set("b");
  plan({a, b});
  EXPECT_EQ(facts().size(), 1u);
  passes();
  pipeline->pod_changed(terminating(b), now);
  EXPECT_THAT(facts(), IsEmpty());
}

TEST_F(GangsOfADrain, AMemberThatABackupBringsBackTerminatingBreaksNoGang) {
  make({.max_places = 0});
  const auto running = of_job_set("a"), earlier = terminating(of_job_set("earlier-start"));
  plan({running, earlier});
  passes();
  pipeline->pod_gone(earlier.uid, now, wall);
  passes();
  pipeline->pod_listed(earlier, now, now);
  EXPECT_FALSE(is_broken(running)) << "a restored backup of etcd ends no gang";
}

TEST_F(GangsOfADrain, AGroupThatIsWhollyOnTheNodeBreaksNothingElse) {
  make({.max_places = 0});
  plan({of_group("a", "0", "2"), of_group("b", "0", "2"), of_group("c", "1", "2")});
  ASSERT_EQ(facts().size(), 2u);
  EXPECT_THAT(facts()[0].message,
              AllOf(HasSubstr("pods shop/a, shop/b are all its pods; their eviction stops this group"),
                    HasSubstr("nothing on other nodes")));
  EXPECT_THAT(facts()[1].message, AllOf(HasSubstr("pod shop/c is one of its 2 pods"), HasSubstr("also on other nodes"),
                                        Not(HasSubstr("nothing on other nodes"))));
}

TEST_F(GangsOfADrain, AGangIsBrokenWhenAMemberThatRanIsDeleted) {
  policy.gangs = Treatment::park;
  make({.max_places = 0});
  const auto a = of_job_set("a"), b = of_job_set("b"), c = of_job_set("c"), other = of_job_set("o", "test");
  plan({a, b, c, other});
  EXPECT_FALSE(is_broken(a));
  passes();
  pipeline->pod_changed(terminating(b), now);
  EXPECT_TRUE(is_broken(a));
  EXPECT_FALSE(is_broken(other));
  passes();
  gone(b);
  EXPECT_TRUE(is_broken(a));
  passes();
  const auto next = of_job_set("of-the-next-start");
  pipeline->pod_changed(next, now);
  EXPECT_FALSE(is_broken(next));
}

// While the watch was silent, a member may have finished and been deleted.
TEST_F(GangsOfADrain, AMemberThatIsDeletedUnseenBreaksNoGang) {
  policy.gangs = Treatment::park;
  make({.max_places = 0});
  const auto a = of_job_set("a"), b = of_job_set("b"), c = of_job_set("c");
  plan({a, b, c});
  passes();
  gone(b);
  k8s::Pod done = terminating(c);
  done.phase = k8s::PodPhase::succeeded;
  pipeline->pod_changed(done, now);
  EXPECT_FALSE(is_broken(a));
}

TEST_F(GangsOfADrain, WhatIsLeftOverFromAnEarlierStartBreaksNoGang) {
  policy.gangs = Treatment::park;
  policy.finished = Treatment::evict;
  make({.max_places = 0});
  const auto a = of_job_set("a"), stuck = terminating(of_job_set("stuck"));
  k8s::Pod done = of_job_set("done");
  done.phase = k8s::PodPhase::succeeded;
  plan({a, stuck, done});
  passes();
  gone(stuck);
  gone(done);
  EXPECT_FALSE(is_broken(a));
  EXPECT_FALSE(is_broken(a_pod("unknown")));
}

TEST_F(GangsOfADrain, MembersGoTogetherAfterTheOthersHaveVanished) {
  policy.rules = {parse_pod_rule("app=log=last").value(), parse_pod_rule("app=at-once=evict").value()};
  make({.max_places = 0, .own_uid = a_pod("own").uid});
  auto log = a_pod("log"), at_once = of_job_set("at-once");
  log.labels = {{"app", "log"}};
  at_once.labels["app"] = "at-once";
  k8s::Pod a = of_job_set("a"), b = of_job_set("b"), other = of_job_set("aa", "test");
  b.priority = 1000;
  a.annotations = {{"haulout.dev/drain-order", "0"}};
  const auto own = a_pod("own"), web = a_pod("web"), held = a_pod("held");
  plan({own, log, a, b, other, at_once, web, held});
  EXPECT_THAT(take(), ElementsAre("at-once", "held", "web")) << "a rule with evict takes it out of the order of gangs";
  accept(at_once);
  refuse(held, testing::closed_budget);
  take_and_lose(web);
  gone(at_once);
  EXPECT_THAT(take(), IsEmpty()) << "the drain may still be blocked, so it breaks no gang";
  gone(held);
  EXPECT_THAT(take(), ElementsAre("aa")) << "one gang after the other";
  accept(other);
  EXPECT_THAT(take(), ElementsAre("a", "b")) << "all members at once, whatever their priority";
  for (const k8s::Pod& pod : {a, b, other}) {
    accept(pod);
    gone(pod);
  }
  EXPECT_THAT(take(), ElementsAre("log"));
  accept(log);
  gone(log);
  EXPECT_THAT(take(), ElementsAre("own"));
}

// While policy keeps another pod on the node, whatever its stage, the drain would stop a run in vain.
TEST_F(GangsOfADrain, NoGangIsBrokenWhilePolicyKeepsAnotherPod) {
  const auto with = [](k8s::Pod pod, const std::string& key, const std::string& value) {
    pod.labels[key] = value;
    return pod;
  };
  const auto kept = [](k8s::Pod pod) {
    pod.annotations["karpenter.sh/do-not-disrupt"] = "true";
    return pod;
  };
  struct Row {
    const char* what;
    k8s::Pod other;
  };
  const Row rows[] = {{"a member of the same gang", kept(of_job_set("other"))},
                      {"a member of a later gang", kept(of_job_set("other", "unlike"))},
                      {"a member that a label makes the drain wait for",
                       with(of_job_set("other", "unlike"), "cluster.x-k8s.io/drain", "wait-completed")},
                      {"a pod that goes last", kept(with(a_pod("other"), "app", "log"))}};
  policy.rules = {parse_pod_rule("app=log=last").value()};
  for (const Row& row : rows) {
    make({.max_places = 0});
    const auto a = of_job_set("a"), b = of_job_set("b");
    plan({a, b, row.other});
    EXPECT_THAT(take(), IsEmpty()) << row.what;
    EXPECT_EQ(tracked(a).report.reason, "WaitingForOtherPods") << row.what;
    EXPECT_THAT(tracked(a).report.message, HasSubstr("until pod shop/other has left, which must wait, too"))
        << row.what;
    gone(row.other);
    EXPECT_THAT(take(), ElementsAre("a", "b")) << row.what;
    EXPECT_EQ(tracked(a).report.reason, "") << row.what;
  }
}

TEST_F(GangsOfADrain, NoMemberGoesWhileOneThatCameLateMayNot) {
  policy.empty_dir = Treatment::refuse;
  make({.max_places = 0});
  const auto a = of_job_set("a");
  k8s::Pod late = of_job_set("late");
  late.has_empty_dir = true;
  plan({a, a_pod("web")});
  pipeline->pod_changed(late, now);
  take_and_lose(a_pod("web"));
  EXPECT_THAT(take(), IsEmpty());
  gone(late);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(GangsOfADrain, ABudgetThatHoldsUpAGangHoldsUpTheNextOnes) {
  make({.max_places = 0});
  const auto a = of_job_set("a", "first"), b = of_job_set("b", "first"), c = of_job_set("c", "second");
  plan({a, b, c});
  EXPECT_THAT(take(), ElementsAre("a", "b"));
  refuse(a, testing::closed_budget);
  refuse(b, testing::closed_budget);
  passes();
  EXPECT_THAT(take(), Not(::testing::Contains("c")));
  EXPECT_EQ(tracked(c).report.reason, "WaitingForOtherPods");
  gone(a);
  k8s::Pod done = b;
  done.phase = k8s::PodPhase::succeeded;
  pipeline->pod_changed(done, now);
  EXPECT_THAT(take(), ElementsAre("c"));
}

// To spare what does not run any more would only lengthen the drain.
TEST_F(GangsOfADrain, AGangThatIsBrokenAlreadyDoesNotWaitForPodsThatPolicyKeeps) {
  make({.max_places = 0});
  const auto a = of_job_set("a"), b = of_job_set("b");
  k8s::Pod kept = of_job_set("kept", "first");
  kept.annotations = {{"karpenter.sh/do-not-disrupt", "true"}};
  plan({a, b, kept});
  EXPECT_THAT(take(), IsEmpty());
  passes();
  pipeline->pod_changed(terminating(b), now);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(GangsOfADrain, APodThatBecomesAMemberIsEvictedWithTheGangs) {
  make({.max_places = 0});
  const auto web = a_pod("web"), a = of_job_set("a");
  k8s::Pod adopted = a_pod("adopted");
  plan({web, a, adopted});
  adopted.labels = a.labels;
  pipeline->pod_changed(adopted, now);
  EXPECT_THAT(take(), ElementsAre("web"));
  accept(web);
  gone(web);
  EXPECT_THAT(take(), ElementsAre("a", "adopted"));
}

TEST_F(GangsOfADrain, AMemberThatHasFinishedMeanwhileWaitsForNobody) {
  policy.finished = Treatment::evict;
  make({.max_places = 0});
  const auto web = a_pod("web"), a = of_job_set("a");
  plan({web, a});
  EXPECT_THAT(take(), ElementsAre("web"));
  accept(web);
  EXPECT_THAT(take(), IsEmpty());
  k8s::Pod done = a;
  done.phase = k8s::PodPhase::succeeded;
  pipeline->pod_changed(done, now);
  EXPECT_THAT(take(), ElementsAre("a"));
}

}  // namespace
}  // namespace haulout::drain
