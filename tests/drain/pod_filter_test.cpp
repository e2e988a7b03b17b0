#include "drain/pod_filter.hpp"

#include <gmock/gmock.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using testing::a_pod;
using testing::owned_by;
using testing::terminating;

constexpr WallTime noon{std::chrono::hours(12)};

Policy kubectl_policy() {
  Policy policy;
  policy.daemon_set = policy.orphaned_daemon_set = policy.empty_dir = policy.unmanaged = Treatment::refuse;
  policy.finished = policy.do_not_disrupt = Treatment::evict;
  return policy;
}

k8s::Pod with(k8s::Pod pod, const std::function<void(k8s::Pod&)>& change) {
  change(pod);
  return pod;
}

struct Row {
  std::string what;
  k8s::Pod pod;
  Verdict command;  // expected action with kubectl's flags and defaults
  Verdict agent;
  std::string reason;  // expected reason if an action is not evict
};

TEST(PodFilter, WhatEachKindOfPodGets) {
  const auto daemon = owned_by(a_pod("d"), "apps/v1", "DaemonSet", "log", "ds-uid");
  const auto finished = [](k8s::Pod& pod) { pod.phase = k8s::PodPhase::succeeded; };
  const auto stopped = [](k8s::Pod pod) {
    pod.phase = k8s::PodPhase::failed;
    return terminating(pod);
  };
  const Row rows[] = {
      {"ordinary", a_pod("web"), Verdict::evict, Verdict::evict, ""},
      {"mirror", with(a_pod("m"), [](auto& p) { p.annotations["kubernetes.io/config.mirror"] = "x"; }), Verdict::skip,
       Verdict::skip, "MirrorPod"},
      {"mirror by owner", owned_by(a_pod("m"), "v1", "Node", "n1", "node-uid"), Verdict::skip, Verdict::skip,
       "MirrorPod"},
      {"finished mirror",
       with(with(a_pod("m"), finished), [](auto& p) { p.annotations["kubernetes.io/config.mirror"] = "x"; }),
       Verdict::skip, Verdict::skip, "MirrorPod"},
      {"daemon set", daemon, Verdict::refuse, Verdict::skip, "DaemonSetManaged"},
      {"foreign daemon set", owned_by(a_pod("k"), "apps.kruise.io/v1alpha1", "DaemonSet", "log", "kruise"),
       Verdict::refuse, Verdict::skip, "DaemonSetManaged"},
      {"orphaned daemon pod", owned_by(a_pod("o"), "apps/v1", "DaemonSet", "old", "gone-uid"), Verdict::refuse,
       Verdict::evict, "OrphanedDaemonSetPod"},
      {"finished", with(a_pod("job"), finished), Verdict::evict, Verdict::skip, "Finished"},
      {"finished daemon pod", with(daemon, finished), Verdict::evict, Verdict::skip, "Finished"},
      {"finished, unmanaged, emptyDir",
       with(with(a_pod("j"), finished),
            [](auto& p) {
              p.controller.reset();
              p.has_empty_dir = true;
            }),
       Verdict::evict, Verdict::skip, "Finished"},
      {"emptyDir", with(a_pod("e"), [](auto& p) { p.has_empty_dir = true; }), Verdict::refuse, Verdict::evict,
       "EmptyDir"},
      {"unmanaged", with(a_pod("u"), [](auto& p) { p.controller.reset(); }), Verdict::refuse, Verdict::evict,
       "Unmanaged"},
      {"daemon pod with emptyDir", with(daemon, [](auto& p) { p.has_empty_dir = true; }), Verdict::refuse,
       Verdict::skip, "DaemonSetManaged"},
      {"protected", with(a_pod("p"), [](auto& p) { p.annotations["karpenter.sh/do-not-disrupt"] = "true"; }),
       Verdict::evict, Verdict::park, "DoNotDisrupt"},
      {"not safe to evict",
       with(a_pod("p"), [](auto& p) { p.annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"; }),
       Verdict::evict, Verdict::park, "DoNotDisrupt"},
      {"safe to evict",
       with(a_pod("p"), [](auto& p) { p.annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "true"; }),
       Verdict::evict, Verdict::evict, ""},
      {"protected and leaving",
       with(terminating(a_pod("p")), [](auto& p) { p.annotations["karpenter.sh/do-not-disrupt"] = "true"; }),
       Verdict::evict, Verdict::evict, ""},
      // The kubelet has stopped the pod and reports that before it unmounts the volumes.
      {"stopped", stopped(a_pod("s")), Verdict::evict, Verdict::evict, ""},
      {"stopped, unmanaged, emptyDir",
       with(stopped(a_pod("s")),
            [](auto& p) {
              p.controller.reset();
              p.has_empty_dir = true;
            }),
       Verdict::evict, Verdict::evict, ""},
      {"stopped daemon pod", stopped(daemon), Verdict::refuse, Verdict::skip, "DaemonSetManaged"},
  };
  const DaemonSetStates states{{"ds-uid", DaemonSetState::exists}, {"gone-uid", DaemonSetState::gone}};
  for (const Row& row : rows) {
    const Decision command = decide(row.pod, kubectl_policy(), states, noon);
    const Decision agent = decide(row.pod, Policy(), states, noon);
    EXPECT_EQ(command.verdict, row.command) << row.what << ", command";
    EXPECT_EQ(agent.verdict, row.agent) << row.what << ", agent";
    if (row.command != Verdict::evict) EXPECT_EQ(command.reason, row.reason) << row.what;
    if (row.agent != Verdict::evict) EXPECT_EQ(agent.reason, row.reason) << row.what;
  }
}

k8s::LabelSelector selector(const std::string& text) {
  return k8s::parse_label_selector(text).value();
}

TEST(PodFilter, SelectedPodsOfDaemonSetsLeave) {
  const DaemonSetStates states{{"ds-uid", DaemonSetState::exists}, {"gone-uid", DaemonSetState::gone}};
  auto logs = owned_by(a_pod("logs"), "apps/v1", "DaemonSet", "logs", "ds-uid");
  logs.labels = {{"app", "logs"}};
  struct Case {
    std::string what;
    k8s::Pod pod;
    Verdict verdict, later;  // later: for a pod that has come in place of an evicted one
    Stage stage;
  };
  const Case cases[] = {
      {"selected", logs, Verdict::evict, Verdict::skip, Stage::daemon_sets},
      {"that ends already", terminating(logs), Verdict::evict, Verdict::skip, Stage::daemon_sets},
      {"not selected", with(logs, [](auto& p) { p.labels = {{"app", "net"}}; }), Verdict::refuse, Verdict::skip,
       Stage::first},
      {"of no DaemonSet", with(logs, [](auto& p) { p.controller = a_pod("web").controller; }), Verdict::evict,
       Verdict::evict, Stage::first},
      {"static", with(logs, [](auto& p) { p.annotations["kubernetes.io/config.mirror"] = "x"; }), Verdict::skip,
       Verdict::skip, Stage::daemon_sets},
      {"of a DaemonSet that is gone", with(logs, [](auto& p) { p.controller->uid = "gone-uid"; }), Verdict::evict,
       Verdict::evict, Stage::first},
      {"of a DaemonSet that could not be read", with(logs, [](auto& p) { p.controller->uid = "another-uid"; }),
       Verdict::evict, Verdict::skip, Stage::daemon_sets},
      {"protected", with(logs, [](auto& p) { p.annotations["karpenter.sh/do-not-disrupt"] = "true"; }), Verdict::park,
       Verdict::skip, Stage::daemon_sets},
  };
  Policy policy;
  policy.daemon_set = Treatment::refuse;
  policy.evict_daemon_sets = {selector("app=logs")};
  for (const Case& one : cases) {
    const Decision decision = decide(one.pod, policy, states, noon);
    EXPECT_EQ(decision.verdict, one.verdict) << one.what;
    EXPECT_EQ(decision.stage, one.stage) << one.what;
    EXPECT_EQ(decide(one.pod, policy, states, noon, {.stays_because = created_in_place}).verdict, one.later)
        << one.what;
  }
  // A pod of a DaemonSet never finishes.
  for (const char* action : {"wait-completed", "wait-completed=2h", "last", "evict"}) {
    Policy with_rule = policy;
    with_rule.rules = {parse_pod_rule(std::string("kind:DaemonSet=") + action).value()};
    EXPECT_EQ(decide(logs, with_rule, states, noon).verdict, Verdict::evict) << action;
    EXPECT_EQ(decide(logs, with_rule, states, noon).stage, Stage::daemon_sets) << action;
    auto scratch = logs;
    scratch.has_empty_dir = true;
    with_rule.empty_dir = Treatment::refuse;
    EXPECT_EQ(decide(scratch, with_rule, states, noon).reason, "EmptyDir") << action;
  }
  policy.rules = {parse_pod_rule("kind:DaemonSet=skip").value()};
  EXPECT_EQ(decide(logs, policy, states, noon).reason, "LeftByRule");
  policy.rules.clear();
  policy.leave = {selector("app=logs")};
  EXPECT_EQ(decide(logs, policy, states, noon).reason, "LeftByLabels");
  policy.leave.clear();
  policy.empty_dir = Treatment::refuse;
  logs.has_empty_dir = true;
  EXPECT_EQ(decide(logs, policy, states, noon).reason, "EmptyDir") << "its data would be lost";
  policy.evict_daemon_sets = {k8s::LabelSelector()};
  EXPECT_EQ(decide(logs, policy, states, noon).reason, "DaemonSetManaged") << "an empty selector selects nothing here";
}

TEST(PodFilter, WhatWasStoppedHasNothingLeftToProtect) {
  Policy policy;
  policy.unmanaged = policy.empty_dir = Treatment::refuse;
  auto bare = a_pod("bare");
  bare.controller.reset();
  bare.has_empty_dir = true;
  bare.phase = k8s::PodPhase::succeeded;
  EXPECT_EQ(decide(bare, policy, {}, noon).verdict, Verdict::skip);
  bare = terminating(bare);
  EXPECT_EQ(decide(bare, policy, {}, noon).verdict, Verdict::evict) << "waited for";
  bare.phase = k8s::PodPhase::running;
  EXPECT_EQ(decide(bare, policy, {}, noon).verdict, Verdict::refuse);
}

// Tests the option --gangs.
TEST(PodFilter, MembersOfGangsAreEvictedAwaitedOrRefused) {
  const auto member = with(a_pod("m"), [](auto& p) { p.pod_group = "train"; });
  const auto scratch = with(member, [](auto& p) { p.has_empty_dir = true; });
  const auto bare = with(member, [](auto& p) { p.controller.reset(); });
  const auto kept = with(member, [](auto& p) { p.annotations["karpenter.sh/do-not-disrupt"] = "true"; });
  const auto done = with(member, [](auto& p) { p.phase = k8s::PodPhase::succeeded; });
  const auto judged = [](const k8s::Pod& pod, Treatment gangs, const std::string& rule = "") {
    Policy policy;
    policy.gangs = gangs;
    policy.empty_dir = policy.unmanaged = Treatment::refuse;
    policy.finished = Treatment::evict;
    if (!rule.empty()) policy.rules = {parse_pod_rule(rule).value()};
    return decide(pod, policy, {}, noon);
  };
  struct GangRow {
    const char* what;
    k8s::Pod pod;
    Treatment gangs;
    const char* rule;
    Verdict verdict;
    const char* reason;
    Stage stage = Stage::gang;
  };
  using T = Treatment;
  using V = Verdict;
  const GangRow rows[] = {
      {"evict", member, T::evict, "", V::evict, ""},
      {"wait", member, T::park, "", V::park, "WaitingForGang"},
      {"refuse", member, T::refuse, "", V::refuse, "GangMember"},
      {"no gang", a_pod("web"), T::refuse, "", V::evict, "", Stage::first},
      {"finished", done, T::refuse, "", V::evict, "Finished", Stage::gang},
      {"terminating", terminating(member), T::park, "", V::evict, "", Stage::gang},
      {"what is never evicted may have data", scratch, T::park, "", V::park, "WaitingForGang"},
      {"emptyDir comes first", scratch, T::refuse, "", V::refuse, "EmptyDir"},
      {"no controller", bare, T::evict, "", V::refuse, "Unmanaged"},
      {"a refusal comes before a wait", kept, T::refuse, "", V::refuse, "GangMember"},
      {"protected", kept, T::evict, "", V::park, "DoNotDisrupt"},
      {"rule evict", member, T::refuse, "namespace:shop=evict", V::evict, "", Stage::first},
      {"rule evict, wait", member, T::park, "namespace:shop=evict", V::evict, "", Stage::first},
      {"rule last", member, T::park, "namespace:shop=last", V::evict, "", Stage::last},
      {"rule skip", member, T::refuse, "namespace:shop=skip", V::skip, "LeftByRule"},
      {"rule wait", member, T::refuse, "namespace:shop=wait-completed=1h", V::park, "WaitingForCompletion"},
      {"rule of others", member, T::refuse, "namespace:bank=evict", V::refuse, "GangMember"},
  };
  for (const GangRow& row : rows) {
    const Decision decision = judged(row.pod, row.gangs, row.rule);
    EXPECT_EQ(decision.verdict, row.verdict) << row.what;
    EXPECT_EQ(decision.reason, row.reason) << row.what;
    EXPECT_EQ(decision.stage, row.stage) << row.what;
  }
  EXPECT_TRUE(judged(member, T::park).is_awaited);
  EXPECT_THAT(judged(member, T::park).message, ::testing::HasSubstr("a member of PodGroup shop/train"));
  EXPECT_EQ(judged(member, T::evict).findings.at(0).reason, "GangMember") << "explain shows it";
}

TEST(PodFilter, NothingWaitsForABrokenGangOrWhileTheMachineGoesDown) {
  const auto member = with(a_pod("m"), [](auto& p) { p.pod_group = "train"; });
  Policy policy;
  policy.gangs = Treatment::park;
  EXPECT_EQ(decide(member, policy, {}, noon, {.gang_is_broken = true}).verdict, Verdict::evict);
  EXPECT_EQ(decide(member, policy, {}, noon, {.gang_is_broken = true}).stage, Stage::gang);
  policy.waits_for_work = false;
  EXPECT_EQ(decide(member, policy, {}, noon).verdict, Verdict::evict);
  EXPECT_EQ(decide(member, policy, {}, noon).stage, Stage::first) << "it does not wait for other pods either";
  policy.gangs = Treatment::refuse;
  EXPECT_EQ(decide(member, policy, {}, noon).verdict, Verdict::evict) << "nothing would be spared";
}

TEST(PodFilter, EveryFindingIsKept) {
  auto pod = a_pod("x");
  pod.controller.reset();
  pod.has_empty_dir = true;
  const Decision decision = decide(pod, kubectl_policy(), {}, noon);
  ASSERT_EQ(decision.findings.size(), 2u);
  EXPECT_EQ(decision.findings[0].reason, "EmptyDir");
  EXPECT_EQ(decision.findings[1].reason, "Unmanaged");
  EXPECT_EQ(decision.reason, "EmptyDir");
}

TEST(PodFilter, UnknownDaemonSetIsTakenAsExisting) {
  const auto daemon = owned_by(a_pod("d"), "apps/v1", "DaemonSet", "log", "ds-uid");
  EXPECT_EQ(decide(daemon, Policy(), {}, noon).verdict, Verdict::skip);
  EXPECT_EQ(decide(daemon, Policy(), {{"ds-uid", DaemonSetState::unknown}}, noon).verdict, Verdict::skip);
}

TEST(PodFilter, PodSelectorSkipsTheOthers) {
  Policy policy = kubectl_policy();
  policy.pod_selector = *k8s::parse_label_selector("app=web");
  auto web = a_pod("web");
  web.labels["app"] = "web";
  auto unmanaged = a_pod("db");
  unmanaged.controller.reset();
  EXPECT_EQ(decide(web, policy, {}, noon).verdict, Verdict::evict);
  EXPECT_EQ(decide(unmanaged, policy, {}, noon).verdict, Verdict::skip) << "what is not selected cannot refuse either";
}

TEST(PodFilter, LongTerminatingPodsAreSkippedOnlyWhenAsked) {
  Policy policy;
  const auto pod = terminating(a_pod("t"), noon - std::chrono::seconds(91), 30);
  EXPECT_EQ(decide(pod, policy, {}, noon).verdict, Verdict::evict);
  policy.skip_terminating_after = std::chrono::seconds(60);
  EXPECT_EQ(decide(pod, policy, {}, noon).verdict, Verdict::skip);
  EXPECT_EQ(decide(pod, policy, {}, noon - std::chrono::seconds(2)).verdict, Verdict::evict)
      << "the timestamp is the end of the grace period";
  EXPECT_EQ(decide(pod, policy, {}, noon - std::chrono::seconds(1)).verdict, Verdict::evict)
      << "as long is not longer, as with kubectl";
}

// Tests the agent's option --leave-pods.
TEST(PodFilter, PodsThatMatchASelectorStay) {
  Policy policy;
  policy.leave = {k8s::parse_label_selector("app=typha").value(), k8s::parse_label_selector("stays").value(), {}};
  auto pod = a_pod("p");
  EXPECT_EQ(decide(pod, policy, {}, noon).verdict, Verdict::evict) << "an empty selector selects nothing here";
  pod.labels["app"] = "typha";
  EXPECT_EQ(decide(pod, policy, {}, noon).verdict, Verdict::skip);
  EXPECT_EQ(decide(pod, policy, {}, noon).reason, "LeftByLabels");
  pod.labels = {{"stays", ""}};
  EXPECT_EQ(decide(pod, policy, {}, noon).reason, "LeftByLabels");
}

TEST(PodFilter, ProtectionByDurationRunsOut) {
  auto pod = a_pod("p");
  pod.start_time = noon;
  pod.annotations["karpenter.sh/do-not-disrupt"] = "1h30m";
  EXPECT_FALSE(do_not_disrupt(pod, noon + std::chrono::minutes(89)).empty());
  EXPECT_TRUE(do_not_disrupt(pod, noon + std::chrono::minutes(90)).empty());
  EXPECT_EQ(do_not_disrupt(pod, noon), "karpenter.sh/do-not-disrupt=1h30m until 1970-01-01T13:30:00Z");
  pod.start_time.reset();
  EXPECT_EQ(do_not_disrupt(pod, noon), "karpenter.sh/do-not-disrupt=1h30m");
  pod.start_time = noon;
  for (const char* nonsense :
       {"", "yes", "5", "h", "-5m", "1h30", "99999999999999999999h", "1000000h1000000h1000000h"}) {
    pod.annotations["karpenter.sh/do-not-disrupt"] = nonsense;
    EXPECT_TRUE(do_not_disrupt(pod, noon).empty()) << nonsense;
  }
}

// Go's syntax of durations: fractions, several units, small units.
TEST(PodFilter, ProtectionTakesAllOfGosDurations) {
  using std::chrono::milliseconds;
  struct Row {
    const char* text;
    std::chrono::microseconds takes;
  };
  const Row rows[] = {{"1.5h", std::chrono::minutes(90)},     {".5m", std::chrono::seconds(30)},
                      {"1h0.5m", std::chrono::seconds(3630)}, {"90000ms", std::chrono::seconds(90)},
                      {"2.5s", milliseconds(2500)},           {"1500000\u00b5s", milliseconds(1500)},
                      {"1500000\u03bcs", milliseconds(1500)}, {"1500000us", milliseconds(1500)},
                      {"+1.5h", std::chrono::minutes(90)},    {"1ns", std::chrono::microseconds(1)}};
  auto pod = a_pod("p");
  pod.start_time = noon;
  for (const Row& row : rows) {
    pod.annotations["karpenter.sh/do-not-disrupt"] = row.text;
    EXPECT_FALSE(do_not_disrupt(pod, noon + row.takes - std::chrono::microseconds(1)).empty()) << row.text;
    EXPECT_TRUE(do_not_disrupt(pod, noon + row.takes).empty()) << row.text;
  }
}

// As in kubectl, --skip-wait-for-delete-timeout comes before all other rules. Its main use is finished pods with a
// finalizer.
TEST(PodFilter, WhatHasBeenTerminatingForTooLongIsSkippedWhateverElseItIs) {
  Policy policy;
  policy.finished = Treatment::evict;
  policy.daemon_set = Treatment::refuse;
  policy.skip_terminating_after = std::chrono::seconds(60);
  const WallTime at{std::chrono::hours(1)};
  auto finished = testing::terminating(testing::a_pod("job"), at);
  finished.phase = k8s::PodPhase::succeeded;
  auto daemon = testing::terminating(testing::owned_by(testing::a_pod("log"), "apps/v1", "DaemonSet", "log", "u"), at);
  for (const auto& pod : {finished, daemon})
    EXPECT_EQ(decide(pod, policy, {}, at + std::chrono::minutes(2)).verdict, Verdict::skip) << pod.name;
}

}  // namespace
}  // namespace haulout::drain
