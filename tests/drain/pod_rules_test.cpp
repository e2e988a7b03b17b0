#include "drain/pod_rules.hpp"

#include <gmock/gmock.h>

#include "drain/pod_filter.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::HasSubstr;
using testing::owned_by;
using testing::terminating;

constexpr WallTime noon{12h};

k8s::Pod labelled(k8s::Pod pod, std::map<std::string, std::string> labels) {
  pod.labels = std::move(labels);
  return pod;
}

k8s::Pod job_pod() {
  return owned_by(a_pod("train-7"), "batch/v1", "Job", "train", "job-uid");
}

k8s::Pod web_pod() {
  return labelled(owned_by(a_pod("web-6d4b9-x"), "apps/v1", "ReplicaSet", "web-6d4b9", "rs-uid"),
                  {{"app", "web"}, {"pod-template-hash", "6d4b9"}});
}

PodRule rule(const std::string& text) {
  return parse_pod_rule(text).value();
}

TEST(PodRules, WhichPodsMatch) {
  const struct {
    const char* rule;
    bool job, web;
  } rows[] = {
      {"kind:Job=skip", true, false},
      {"kind:job=skip", true, false},
      {"kind:Deployment=skip", false, true},
      {"kind:ReplicaSet=skip", false, true},
      {"namespace:shop=skip", true, true},
      {"namespace:sho=skip", false, false},
      {"app=web=skip", false, true},
      {"app in (web,db)=skip", false, true},
      {"namespace:shop,app=web=skip", false, true},
      {"namespace:bank,app=web=skip", false, false},
      {"kind:Job,app=web=skip", false, false},
      {"kind:Job,namespace:shop=skip", true, false},
      {"controller:Job/shop/train=skip", true, false},
      {"controller:Job/bank/train=skip", false, false},
      {"controller:Job/shop/trai=skip", false, false},
      {"controller:Deployment/shop/web=skip", false, true},
      {"controller:Deployment/shop/web-6d4b9=skip", false, false},
      {"controller:ReplicaSet/shop/web-6d4b9=skip", false, true},
      {"controller:StatefulSet/shop/web=skip", false, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(rule(row.rule).matches(job_pod()), row.job) << row.rule;
    EXPECT_EQ(rule(row.rule).matches(web_pod()), row.web) << row.rule;
  }
  k8s::Pod bare = a_pod("bare");
  bare.controller.reset();
  EXPECT_FALSE(rule("kind:Job=skip").matches(bare));
  EXPECT_FALSE(rule("controller:Job/shop/bare=skip").matches(bare));
}

TEST(PodRules, APodThatADrainHasSurgedIsStillOneOfItsDeployment) {
  k8s::Pod surged = web_pod();
  k8s::SurgeMark& mark = surged.surge_mark.emplace();
  mark.hash = surged.labels.at("pod-template-hash");
  surged.labels.erase("pod-template-hash");
  EXPECT_TRUE(rule("controller:Deployment/shop/web=skip").matches(surged));
  EXPECT_TRUE(rule("kind:Deployment=skip").matches(surged));
}

TEST(PodRules, AReplicaSetWithoutADeploymentIsNoDeployment) {
  k8s::Pod alone = web_pod();
  alone.labels.erase("pod-template-hash");
  EXPECT_FALSE(rule("kind:Deployment=skip").matches(alone));
  alone.labels["pod-template-hash"] = "another";
  EXPECT_FALSE(rule("kind:Deployment=skip").matches(alone));
}

TEST(PodRules, ActionsAndLimits) {
  EXPECT_EQ(rule("app=a=evict").action, PodAction::evict);
  EXPECT_EQ(rule("app=a=last").action, PodAction::last);
  EXPECT_EQ(rule("app=a=wait-completed").action, PodAction::wait_completed);
  EXPECT_EQ(rule("app=a=wait-completed").limit, std::nullopt);
  EXPECT_EQ(rule("app=a=wait-completed=1h30m").action, PodAction::wait_completed);
  EXPECT_EQ(rule("app=a=wait-completed=1h30m").limit, Duration(90min));
  EXPECT_EQ(rule("app=a=wait-completed=1h30m").text, "app=a=wait-completed=1h30m");
}

TEST(PodRules, WrongRulesAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "does not end with an action"},
      {"app=web", "does not end with an action"},
      {"skip", "does not end with an action"},
      {"=skip", "names no pods"},
      {"kind:=skip", "nothing is written after kind:"},
      {"kind:Job,kind:Pod=skip", "kind: is written twice"},
      {"controller:Job/train=skip", "'Job/train' is no controller: write KIND/NAMESPACE/NAME"},
      {"controller:Job/shop/=skip", "is no controller"},
      {"controller:/shop/train=skip", "is no controller"},
      {"controller:Job//train=skip", "is no controller"},
      {"controller:Job/shop/train/x=skip", "is no controller"},
      {"app in (web=skip", "write WHO=ACTION"},
      {"namespace: batch=skip", "' batch' is not the name of a namespace"},
      {"namespace:batch app=x=last", "'batch app=x' is not the name of a namespace"},
      {"namespace:Batch=skip", "'Batch' is not the name of a namespace"},
      {"kind:Job=wait-completed=2h=last", "'Job=wait-completed=2h' is not a kind"},
      {"kind:Job;app=x=skip", "is not a kind"},
      {"kind:CronJob=wait-completed", "write kind:Job"},
      {"namespace=batch=skip", "namespace= selects pods by a label with the key namespace; write namespace:"},
      {"kind=Job=wait-completed=2h", "kind= selects pods by a label"},
      {"app=x,controller=y=skip", "controller= selects pods by a label"},
      {"app=a=wait-completed=soon", "write WHO=ACTION"},
      {"app=a=wait-completed=0s", "must be longer than 0"},
      {"app=a=wait-completed=-1m", "must be longer than 0"},
      {"app=a=wait-completed=", "write WHO=ACTION"},
  };
  for (const auto& [text, why] : rows) {
    const auto parsed = parse_pod_rule(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Errc::invalid);
    EXPECT_THAT(parsed.error().message(), HasSubstr(why)) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("like kind:Job=wait-completed=2h")) << text;
  }
}

TEST(PodRules, TheFirstRuleThatMatchesApplies) {
  const std::vector<PodRule> rules = {rule("app=web=last"), rule("namespace:shop=skip")};
  EXPECT_EQ(handling_of(web_pod(), rules, ClusterApiLabels::all)->action, PodAction::last);
  EXPECT_EQ(handling_of(web_pod(), rules, ClusterApiLabels::all)->source, "rule app=web=last");
  EXPECT_EQ(handling_of(job_pod(), rules, ClusterApiLabels::all)->action, PodAction::skip);
  EXPECT_FALSE(handling_of(a_pod("x"), {}, ClusterApiLabels::all));
}

TEST(PodRules, TheLabelOfClusterApiComesFirst) {
  const std::vector<PodRule> rules = {rule("namespace:shop=last")};
  const struct {
    const char* value;
    std::optional<PodAction> action;
  } rows[] = {{"skip", PodAction::skip},
              {"Skip", PodAction::skip},
              {"wait-completed", PodAction::wait_completed},
              {"WaitCompleted", PodAction::wait_completed},
              {"drain", std::nullopt},
              {"", std::nullopt}};
  for (const auto& row : rows) {
    const k8s::Pod pod = labelled(a_pod("x"), {{"cluster.x-k8s.io/drain", row.value}});
    EXPECT_EQ(handling_of(pod, rules, ClusterApiLabels::all)->action, row.action.value_or(PodAction::last))
        << row.value;
    EXPECT_EQ(handling_of(pod, rules, ClusterApiLabels::off)->action, PodAction::last) << row.value;
    const bool waits = row.action == PodAction::wait_completed;
    EXPECT_EQ(handling_of(pod, rules, ClusterApiLabels::wait)->action,
              waits ? PodAction::wait_completed : PodAction::last)
        << row.value;
  }
}

Policy with_rule(const std::string& text) {
  Policy policy;
  policy.rules = {rule(text)};
  return policy;
}

TEST(PodRules, ARuleThatSkipsIsFollowedAlsoForATerminatingPod) {
  const Policy policy = with_rule("kind:Job=skip");
  for (const k8s::Pod& pod : {job_pod(), terminating(job_pod())}) {
    const Decision decision = decide(pod, policy, {}, noon);
    EXPECT_EQ(decision.verdict, Verdict::skip);
    EXPECT_EQ(decision.reason, "LeftByRule");
    EXPECT_TRUE(can_be_judged_again(decision.reason));
  }
}

TEST(PodRules, AWaitEndsWithTheWorkOrWithTheLimit) {
  const Policy policy = with_rule("kind:Job=wait-completed=1h");
  const Decision before = decide(job_pod(), policy, {}, noon);
  EXPECT_EQ(before.verdict, Verdict::park);
  EXPECT_EQ(before.reason, "WaitingForCompletion");
  EXPECT_EQ(
      before.message,
      "waiting until the pod has finished, at most until 1h00m after the cordon (rule kind:Job=wait-completed=1h)");
  EXPECT_FALSE(before.is_awaited);
  EXPECT_EQ(decide(job_pod(), policy, {}, noon, {59min}).verdict, Verdict::park);
  EXPECT_EQ(decide(job_pod(), policy, {}, noon, {1h}).verdict, Verdict::evict);
  EXPECT_EQ(decide(terminating(job_pod()), policy, {}, noon, {0s}).verdict, Verdict::evict) << "it leaves already";
  k8s::Pod done = job_pod();
  done.phase = k8s::PodPhase::succeeded;
  EXPECT_EQ(decide(done, policy, {}, noon, {0s}).reason, "Finished");
  const Decision unlimited = decide(job_pod(), with_rule("kind:Job=wait-completed"), {}, noon, {1000h});
  EXPECT_EQ(unlimited.verdict, Verdict::park);
  EXPECT_TRUE(unlimited.is_awaited);
  EXPECT_EQ(unlimited.message,
            "waiting without a time limit until the pod has finished (rule kind:Job=wait-completed)");
}

// A drain that must not evict the pod when the limit has passed does not begin. A drain that waits without a limit
// evicts no pod with data, so it may begin.
TEST(PodRules, AWaitWithALimitDoesNotHideWhatRefusesThePod) {
  k8s::Pod scratch = job_pod();
  scratch.has_empty_dir = true;
  Policy policy = with_rule("kind:Job=wait-completed=1h");
  policy.empty_dir = Treatment::refuse;
  EXPECT_EQ(decide(scratch, policy, {}, noon).reason, "EmptyDir");
  policy.rules = {rule("kind:Job=wait-completed")};
  EXPECT_EQ(decide(scratch, policy, {}, noon).reason, "WaitingForCompletion");
}

TEST(PodRules, ARuleTakesPrecedenceOverWhatWouldLeaveThePod) {
  k8s::Pod bare = a_pod("bare");
  bare.controller.reset();
  Policy policy = with_rule("namespace:shop=wait-completed=1h");
  policy.unmanaged = Treatment::skip;
  EXPECT_EQ(decide(bare, policy, {}, noon).reason, "WaitingForCompletion");
  EXPECT_EQ(decide(bare, policy, {}, noon, {1h}).verdict, Verdict::evict);
  policy.rules = {rule("namespace:shop=last")};
  const Decision last = decide(bare, policy, {}, noon);
  EXPECT_EQ(last.verdict, Verdict::evict);
  EXPECT_EQ(last.stage, Stage::last);
  policy.rules = {rule("namespace:bank=last")};
  EXPECT_EQ(decide(bare, policy, {}, noon).verdict, Verdict::skip);
}

TEST(PodRules, AShutdownWaitsForNoWork) {
  Policy policy = with_rule("kind:Job=wait-completed");
  policy.waits_for_work = false;
  EXPECT_EQ(decide(job_pod(), policy, {}, noon).verdict, Verdict::evict);
}

TEST(PodRules, EvictIsAnExceptionFromTheFiltersThatRefuse) {
  k8s::Pod bare = a_pod("bare");
  bare.controller.reset();
  bare.has_empty_dir = true;
  const k8s::Pod orphan = owned_by(a_pod("o"), "apps/v1", "DaemonSet", "old", "gone-uid");
  const DaemonSetStates states{{"gone-uid", DaemonSetState::gone}};
  Policy policy;
  policy.empty_dir = policy.unmanaged = policy.orphaned_daemon_set = Treatment::refuse;
  for (const k8s::Pod& pod : {bare, orphan}) {
    policy.rules.clear();
    EXPECT_EQ(decide(pod, policy, states, noon).verdict, Verdict::refuse);
    policy.rules = {rule("namespace:shop=last")};
    EXPECT_EQ(decide(pod, policy, states, noon).verdict, Verdict::refuse) << "only evict is an exception";
    policy.rules = {rule("namespace:shop=evict")};
    EXPECT_EQ(decide(pod, policy, states, noon).verdict, Verdict::evict);
  }
  k8s::Pod guarded = a_pod("guarded");
  guarded.annotations["karpenter.sh/do-not-disrupt"] = "true";
  EXPECT_EQ(decide(guarded, policy, states, noon).verdict, Verdict::park) << "its owner has protected it";
}

TEST(PodRules, NoRuleEvictsAMirrorPodOrADaemonSetPod) {
  k8s::Pod mirror = a_pod("m");
  mirror.annotations["kubernetes.io/config.mirror"] = "x";
  const k8s::Pod daemon = owned_by(a_pod("d"), "apps/v1", "DaemonSet", "log", "ds-uid");
  for (const char* text : {"namespace:shop=evict", "namespace:shop=last", "namespace:shop=wait-completed"}) {
    Policy policy = with_rule(text);
    EXPECT_EQ(decide(mirror, policy, {}, noon).verdict, Verdict::skip) << text;
    policy.daemon_set = Treatment::refuse;
    EXPECT_EQ(decide(daemon, policy, {}, noon).reason, "DaemonSetManaged") << text;
    EXPECT_EQ(decide(daemon, policy, {}, noon).verdict, Verdict::refuse) << text;
  }
  Policy policy = with_rule("namespace:shop=skip");
  policy.daemon_set = Treatment::refuse;
  EXPECT_EQ(decide(daemon, policy, {}, noon).reason, "LeftByRule") << "as with --ignore-daemonsets";
}

}  // namespace
}  // namespace haulout::drain
