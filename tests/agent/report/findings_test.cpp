// Every finding of a drain is told, with its way out, in the agent's message.
#include <gmock/gmock.h>

#include <map>

#include "agent/lifecycle/drain_status.hpp"
#include "agent/report/reasons.hpp"

namespace haulout::agent {
namespace {

using drain::EventType;
using ::testing::HasSubstr;

std::vector<std::string> all_findings() {
  std::vector<std::string> codes;
  for (const Reason& reason : reasons())
    if (reason.group.starts_with("Findings of a drain")) codes.emplace_back(reason.name);
  return codes;
}

class Nobody final : public drain::DrainObserver {
 public:
  void on_event(const drain::Event&) override {}
};

// What a drain waits for while there is such a finding.
enum class Waits { pod, volume, nothing };

struct Told {
  Waits waits;
  drain::Scope scope;
};

const drain::Scope node{}, of_pod{.pods = {"u"}}, of_volume{.volumes = {"csi-1"}};
const drain::Scope node_advice{.holds = false}, pod_advice{.pods = {"u"}, .holds = false};

const std::map<std::string, Told> told{
    {"PDB_ZERO", {Waits::pod, of_pod}},
    {"PDB_SINGLE_REPLICA", {Waits::pod, of_pod}},
    {"PDB_EQUALS_REPLICAS", {Waits::pod, of_pod}},
    {"PDB_MISCONFIGURED", {Waits::pod, of_pod}},
    {"PDB_SYNC_FAILED", {Waits::pod, of_pod}},
    {"PDB_NOT_OBSERVED", {Waits::pod, of_pod}},
    {"PDB_UNHEALTHY_DEADLOCK", {Waits::pod, of_pod}},
    {"PDB_WAITING_REPLACEMENT", {Waits::pod, of_pod}},
    {"PDB_DISRUPTED_PENDING", {Waits::pod, of_pod}},
    {"PDB_MAP_TOO_BIG", {Waits::pod, of_pod}},
    {"PDB_OVERLAP", {Waits::pod, of_pod}},
    {"WEBHOOK_DENY", {Waits::pod, of_pod}},
    {"ADMISSION_DENY", {Waits::pod, of_pod}},
    {"WEBHOOK_DOWN", {Waits::pod, of_pod}},
    {"NS_TERMINATING_STUCK", {Waits::pod, of_pod}},
    {"POD_PINNED", {Waits::pod, of_pod}},
    {"DO_NOT_DISRUPT", {Waits::pod, of_pod}},
    {"RBAC_DENIED", {Waits::pod, of_pod}},
    {"REPLACEMENT_UNSCHEDULABLE", {Waits::pod, of_pod}},
    {"LOCAL_PV", {Waits::pod, pod_advice}},
    {"VOLUME_STUCK", {Waits::volume, of_volume}},
    {"VOLUME_DETACH_ERROR", {Waits::volume, of_volume}},
    {"VOLUMES_UNSEEN", {Waits::volume, node}},
    {"EMPTINESS_UNPROVED", {Waits::nothing, node}},
    // Their pods are on their way: nothing is waited for that an eviction could bring.
    {"POD_STUCK_TERMINATING", {Waits::nothing, of_pod}},
    {"POD_FINALIZER", {Waits::nothing, of_pod}},
    {"NODE_NOT_READY", {Waits::nothing, node}},
    {"SELF_ONLY", {Waits::nothing, node}},
    {"UNCORDONED_MEANWHILE", {Waits::nothing, node}},
    {"CLOCK_SKEW", {Waits::pod, node_advice}},
    {"VA_LEAKED", {Waits::nothing, {.volumes = {"csi-2"}, .holds = false}}},
    {"SINGLE_REPLICA", {Waits::nothing, pod_advice}},
    {"LAST_READY_PODS", {Waits::nothing, pod_advice}},
    {"REPLICAS_UNKNOWN", {Waits::nothing, pod_advice}},
    {"OVERRIDE_INVALID", {Waits::nothing, pod_advice}},
};

const std::map<std::string, std::string> never_told{
    {"NODE_GONE", "the drain ends with it, and the Node that could show it has gone"},
    {"UnmanagedPodEvicted",
     "an Event of what has happened: nothing is to be waited for, or to be healed in this drain"},
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
  for (const std::string& code : all_findings()) {
    const auto row = told.find(code);
    EXPECT_NE(row == told.end(), never_told.find(code) == never_told.end())
        << code << " must be told in the agent's message (agent/lifecycle/drain_status.hpp), or say here why not";
    if (row == told.end()) continue;
    const drain::Diagnosis finding{code, "the subject", "what, why and the way out", {}, row->second.scope};
    EXPECT_THAT(message(row->second.waits, finding), HasSubstr("the subject: what, why and the way out")) << code;
  }
}

}  // namespace
}  // namespace haulout::agent
