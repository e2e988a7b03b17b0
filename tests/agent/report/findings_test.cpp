// Tests that the agent's message shows every diagnosis of a drain with its remedy.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "agent/lifecycle/drain_status.hpp"
#include "agent/report/reasons.hpp"

namespace haulout::agent {
namespace {

using drain::EventType;
using ::testing::HasSubstr;

// The diagnoses that docs/reasons.md has in a group of their own. The tables below have these and further ones.
std::set<std::string> group_of_diagnoses() {
  std::set<std::string> names;
  for (const Reason& reason : reasons())
    if (reason.group == "Further diagnoses of a drain") names.emplace(reason.name);
  return names;
}

class Nobody final : public drain::DrainObserver {
 public:
  void on_event(const drain::Event&) override {}
};

// What the drain waits for while it has this diagnosis.
enum class Waits { pod, volume, nothing };

struct Told {
  Waits waits;
  drain::Scope scope;
};

const drain::Scope node{}, of_pod{.pods = {"u"}}, of_volume{.volumes = {"csi-1"}};
const drain::Scope node_advice{.holds = false}, pod_advice{.pods = {"u"}, .holds = false};

const std::map<std::string, Told> told{
    {"BudgetNeverAllows", {Waits::pod, of_pod}},
    {"BudgetOfSinglePod", {Waits::pod, of_pod}},
    {"BudgetNeedsAllPods", {Waits::pod, of_pod}},
    {"BudgetMisconfigured", {Waits::pod, of_pod}},
    {"BudgetSyncFailed", {Waits::pod, of_pod}},
    {"BudgetNotObserved", {Waits::pod, of_pod}},
    {"BudgetUnhealthyDeadlock", {Waits::pod, of_pod}},
    {"BudgetAwaitsReplacement", {Waits::pod, of_pod}},
    {"BudgetDisruptionPending", {Waits::pod, of_pod}},
    {"BudgetMapTooBig", {Waits::pod, of_pod}},
    {"OverlappingBudgets", {Waits::pod, of_pod}},
    {"WebhookDenied", {Waits::pod, of_pod}},
    {"AdmissionDenied", {Waits::pod, of_pod}},
    {"WebhookDown", {Waits::pod, of_pod}},
    {"NamespaceStuckTerminating", {Waits::pod, of_pod}},
    {"PodPinned", {Waits::pod, of_pod}},
    {"DoNotDisrupt", {Waits::pod, of_pod}},
    {"RightMissing", {Waits::pod, of_pod}},
    {"ReplacementUnschedulable", {Waits::pod, of_pod}},
    {"LocalVolume", {Waits::pod, pod_advice}},
    {"VolumeStuck", {Waits::volume, of_volume}},
    {"VolumeDetachError", {Waits::volume, of_volume}},
    {"VolumesUnreadable", {Waits::volume, node}},
    {"EmptinessUnproved", {Waits::nothing, node}},
    // The pods of these diagnoses already terminate. So the drain does not wait for an eviction.
    {"PodStuckTerminating", {Waits::nothing, of_pod}},
    {"PodFinalizer", {Waits::nothing, of_pod}},
    {"KubeletNotReady", {Waits::nothing, node}},
    {"OnlyOwnPodLeft", {Waits::nothing, node}},
    {"Uncordoned", {Waits::nothing, node}},
    {"ClockSkew", {Waits::pod, node_advice}},
    {"VolumeAttachmentLeaked", {Waits::nothing, {.volumes = {"csi-2"}, .holds = false}}},
    {"OnlyReplicaEvicted", {Waits::nothing, pod_advice}},
    {"SurgeFailed", {Waits::pod, of_pod}},
    {"SurgeImpossible", {Waits::nothing, pod_advice}},
    {"GangBroken", {Waits::nothing, pod_advice}},
    {"EvictionRequestFailed", {Waits::nothing, pod_advice}},
    {"EvictionRequestsUnserved", {Waits::nothing, node_advice}},
    {"LastReadyPods", {Waits::nothing, pod_advice}},
    {"ReplicasUnknown", {Waits::nothing, pod_advice}},
    {"OverrideInvalid", {Waits::nothing, pod_advice}},
};

const std::map<std::string, std::string> never_told{
    {"NodeGone", "the drain ends with it, and no Node is left that could show it"},
    {"UnmanagedPodEvicted", "an Event about something that has happened: the drain does not wait for it"},
};

std::string message(Waits waits, const drain::Diagnosis& finding) {
  Nobody nobody;
  DrainStatus status(nobody, [] {});
  const std::string name = "n1";
  drain::PodReport pod;
  pod.uid = "u";
  pod.message = "the server's words";
  drain::VolumeReport volume;
  volume.attachment = "csi-1";
  volume.outcome = drain::VolumeOutcome::detaching;
  volume.message = "the driver's words";
  if (waits == Waits::pod)
    status.on_event({.type = EventType::parked, .at = {}, .node = name, .pod = &pod, .message = {}, .progress = {}});
  if (waits == Waits::volume)
    status.on_event(
        {.type = EventType::volume_waiting, .at = {}, .node = name, .message = {}, .progress = {}, .volume = &volume});
  return status.message({finding});
}

TEST(FindingsTest, EachIsToldInTheMessageOfTheAgent) {
  const std::set<std::string> group = group_of_diagnoses();
  ASSERT_FALSE(group.empty());
  for (const std::string& code : group)
    EXPECT_NE(told.contains(code), never_told.contains(code))
        << code << " must stand in the agent's message (agent/lifecycle/drain_status.hpp), or say here why not";
  for (const auto& [code, row] : told) {
    EXPECT_NE(find_reason(code), nullptr) << code;
    const drain::Diagnosis finding{code, "the subject", "what, why and the way out", {}, row.scope};
    EXPECT_THAT(message(row.waits, finding), HasSubstr("the subject: what, why and the way out")) << code;
  }
}

}  // namespace
}  // namespace haulout::agent
