// Tests that `haulout explain` reports every diagnosis of a drain that can be made by reading the cluster.
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "agent/report/reasons.hpp"
#include "cli/people/explanation.hpp"
#include "drain/controller_book.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const WallTime now{1000h};

k8s::Pod a_pod() {
  k8s::Pod pod;
  pod.ns = "shop";
  pod.name = "web-0";
  pod.uid = "u";
  pod.phase = k8s::PodPhase::running;
  pod.ready = true;
  pod.labels = {{"app", "web"}};
  pod.claims = {"data"};
  pod.controller = k8s::OwnerReference{"apps/v1", "StatefulSet", "web", "sts", true};
  return pod;
}

k8s::PodDisruptionBudget a_budget() {
  k8s::PodDisruptionBudget budget;
  budget.ns = "shop";
  budget.name = "web";
  budget.uid = "pdb";
  budget.selector = *k8s::parse_label_selector("app=web");
  budget.min_available = "2";
  budget.current_healthy = 2;
  budget.desired_healthy = 2;
  budget.expected_pods = 3;
  return budget;
}

using Change = std::function<void(NodeFacts&)>;

Change of_budget(const std::function<void(k8s::PodDisruptionBudget&)>& change) {
  return [=](cli::NodeFacts& facts) {
    facts.budgets = {a_budget()};
    change(facts.budgets[0]);
  };
}

Change of_volume(const std::function<void(k8s::VolumeAttachment&)>& change) {
  return [=](cli::NodeFacts& facts) {
    k8s::VolumeAttachment attachment;
    attachment.name = attachment.uid = "csi-1";
    attachment.node_name = facts.node.name;
    attachment.attacher = "csi.example.com";
    attachment.persistent_volume = "pv-1";
    change(attachment);
    facts.asked.volumes = {{attachment, "shop/old"}};
  };
}

Change of_controller(const std::function<void(drain::Controller&)>& change) {
  return [=](cli::NodeFacts& facts) {
    drain::Controller controller = drain::nothing_known_of(*a_pod().controller, "shop", "");
    controller.replicas = 3;
    controller.ready_replicas = 3;
    change(controller);
    facts.asked.controllers = {{"sts", controller}};
  };
}

struct Row {
  Change change;
  const char* way_out;  // part of the remedy
};

std::map<std::string, Row> rows() {
  return {
      {"BudgetNeverAllows",
       {of_budget([](auto& budget) { budget.max_unavailable = "0"; }), "change it to allow at least one disruption"}},
      {"BudgetOfSinglePod",
       {of_budget([](auto& budget) { budget.expected_pods = budget.desired_healthy = budget.current_healthy = 1; }),
        "delete the pod with kubectl"}},
      {"BudgetNeedsAllPods", {of_budget([](auto& budget) { budget.expected_pods = 2; }), "lower minAvailable"}},
      {"BudgetMisconfigured",
       {of_budget([](auto& budget) { budget.expected_pods = 0; }),
        "check that the controllers of its pods have replicas"}},
      {"BudgetSyncFailed",
       {of_budget([](auto& budget) { budget.condition_reason = "SyncFailed"; }), "use an integer minAvailable"}},
      {"BudgetNotObserved",
       {of_budget([](auto& budget) { budget.generation = 2; }), "check that kube-controller-manager"}},
      {"BudgetUnhealthyDeadlock",
       {[](cli::NodeFacts& facts) {
          facts.pods[0].ready = false;
          facts.budgets = {a_budget()};
          facts.budgets[0].current_healthy = 1;
        },
        "AlwaysAllow"}},
      {"BudgetAwaitsReplacement", {of_budget([](auto&) {}), "kubectl get pods -n shop"}},
      {"BudgetDisruptionPending",
       {of_budget([](auto& budget) { budget.disrupted_pods = {{"web-1", now}}; }), "the entries expire"}},
      {"BudgetMapTooBig",
       {of_budget([](auto& budget) {
          for (int i = 0; i < 2001; ++i) budget.disrupted_pods["old-" + std::to_string(i)] = now;
        }),
        "keeps up"}},
      {"OverlappingBudgets",
       {[](cli::NodeFacts& facts) {
          facts.budgets = {a_budget(), a_budget()};
          facts.budgets[1].name = facts.budgets[1].uid = "other";
        },
        "narrow the selector"}},
      {"NamespaceStuckTerminating",
       {[](cli::NodeFacts& facts) {
          facts.asked.dying["shop"] = {.name = "shop", .uid = "", .conditions = {}, .deletion_timestamp = now - 6min};
        },
        "kubectl get namespace shop -o yaml"}},
      {"PodStuckTerminating",
       {[](cli::NodeFacts& facts) { facts.pods[0].deletion_timestamp = now - 2min; }, "kubectl describe pod web-0"}},
      {"PodFinalizer",
       {[](cli::NodeFacts& facts) {
          facts.pods[0].deletion_timestamp = now;
          facts.pods[0].containers_terminated = true;
          facts.pods[0].finalizers = {"example.com/backup"};
        },
        "must remove them"}},
      {"KubeletNotReady", {[](cli::NodeFacts& facts) { facts.node.ready = false; }, "systemctl status kubelet"}},
      {"DoNotDisrupt",
       {[](cli::NodeFacts& facts) { facts.pods[0].annotations = {{"karpenter.sh/do-not-disrupt", "true"}}; },
        "remove the annotation"}},
      {"LocalVolume",
       {[](NodeFacts& facts) { facts.asked.local_volumes = {{"u", "its volume is here; move it"}}; }, "move it"}},
      {"VolumeDetachError",
       {of_volume([](auto& attachment) {
          attachment.detach_error = "busy";
          attachment.deletion_timestamp = now;
        }),
        "see the log of the driver's controller"}},
      {"VolumeStuck",
       {of_volume([](auto& attachment) { attachment.deletion_timestamp = now - 3min; }),
        "kubectl describe volumeattachment csi-1"}},
      {"VolumeAttachmentLeaked", {of_volume([](auto&) {}), "delete the VolumeAttachment"}},
      {"OnlyReplicaEvicted",
       {of_controller([](auto& controller) { controller.replicas = 1; }), "scale it to two replicas"}},
      {"LastReadyPods",
       {of_controller([](auto& controller) {
          controller.replicas = 2;
          controller.ready_replicas = 1;
        }),
        "--max-unavailable-per-controller"}},
      {"SurgeImpossible",
       {of_controller([](auto& controller) { controller.replicas = 1; }),
        "no Deployment, and only pods of Deployments"}},
      {"GangBroken", {[](NodeFacts& facts) { facts.pods[0].pod_group = "train"; }, "--gangs=wait"}},
      {"ReplicasUnknown",
       {of_controller([](auto& controller) { controller = drain::gone_controller(*a_pod().controller, "shop"); }),
        "perhaps nothing replaces its pods"}},
      {"OverrideInvalid",
       {of_controller([](auto& controller) { controller.annotations = {{"haulout.dev/single-replica", "no"}}; }),
        "it must be allow, warn or block"}},
  };
}

// Diagnoses that `explain` does not make itself, with the cause. The agent's message reports them, and `explain` shows
// that message.
const std::map<std::string, std::string> only_of_a_drain{
    {"WebhookDenied", "only the answer to an eviction shows it"},
    {"AdmissionDenied", "only the answer to an eviction shows it"},
    {"WebhookDown", "only the answer to an eviction shows it"},
    {"PodPinned", "its pods came back during the drain"},
    {"ReplacementUnschedulable", "it is about the replacement of an evicted pod"},
    {"VolumesUnreadable", "explain says itself what it may not read"},
    {"EmptinessUnproved", "only a drain proves it"},
    {"RightMissing", "explain runs with the rights of its user, not of the agent"},
    {"OnlyOwnPodLeft", "only the agent knows which pod it runs in"},
    {"ClockSkew", "it is about the clock of the agent's machine"},
    {"NodeGone", "then no Node is left to explain"},
    {"Uncordoned", "it happens after the drain has cordoned the node"},
    {"UnmanagedPodEvicted", "an Event about something that has happened"},
    {"EvictionRequestFailed", "only a drain asks the responders of a pod"},
    {"EvictionRequestsUnserved", "only a drain asks the responders of a pod"},
};

// Each reason in the group "Further diagnoses of a drain" needs a row in the table, or a cause in only_of_a_drain. Runs
// the rows.
TEST(FindingsTest, EachThatCanBeSeenIsExplained) {
  const auto table = rows();
  std::size_t in_group = 0;
  for (const agent::Reason& reason : agent::reasons()) {
    if (reason.group != "Further diagnoses of a drain") continue;
    ++in_group;
    const std::string code(reason.name);
    EXPECT_NE(table.contains(code), only_of_a_drain.contains(code))
        << code << " must be told by explain (cli/people/explanation.hpp, views.hpp), or say here why not";
  }
  EXPECT_GT(in_group, 0U);
  for (const auto& [code, row] : table) {
    NodeFacts facts;
    facts.node.name = "n1";
    facts.node.ready = true;
    facts.node.labels = {{"haulout.dev/state", "idle"}};
    facts.node.annotations = {{"haulout.dev/record", encode_record(agent::Record{})}};
    facts.pods = {a_pod()};
    row.change(facts);
    std::string text;
    for (const std::string& line : explanation_text(explain(facts, now))) text += line + "\n";
    EXPECT_THAT(text, HasSubstr(code));
    EXPECT_THAT(text, HasSubstr(row.way_out)) << code;
    EXPECT_THAT(explanation_json(explain(facts, now)), HasSubstr(code));
  }
}

}  // namespace
}  // namespace haulout::cli
