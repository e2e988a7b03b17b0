// Diagnoses: conditions that keep a drain from ending, or of which a person should know, each with its remedy.
//
// diagnose() is pure and returns the conditions that hold now. DiagnosisBoard turns them into raised and withdrawn
// diagnoses. It raises a diagnosis when its condition has held for its hold time (mostly 0 to 25 s, see
// DiagnosisFact::hold), and withdraws it when the condition does not hold any more. The drain retries evictions in the
// same way whether a diagnosis is raised or not.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drain/pipeline.hpp"
#include "drain/report.hpp"

namespace haulout::drain {

// Input of diagnose() in addition to the pipeline.
struct NodeFacts {
  std::string name;
  bool gone = false;
  bool expect_cordon = false;  // the drain has cordoned the Node or found it cordoned; false in a dry run
  bool unschedulable = true;
  std::string unschedulable_manager{};
  std::optional<Error> pods_error{};  // why the view of pods is not live; unset if it is
  bool ready = true;
  std::string own_uid{};    // UID of the pod that this process runs in; empty if it runs in no pod of this cluster
  Duration server_ahead{};  // the API server's clock minus the local clock
  WallTime server_now{};
};

// Answers to the look-ups about pods that have been parked for a while (Inquiries in drain/findings.hpp).
struct Known {
  std::map<std::string, std::vector<k8s::Pod>> members{};  // all pods that a budget selects, by the budget's UID
  std::map<std::string, std::string> namespaces{};  // why a terminating namespace is not deleted yet, by its name
  std::map<std::string, std::optional<k8s::Service>> services{};  // webhooks' Services, by "ns/name"; nullopt: none
  std::map<std::string, std::string> local_volumes{};             // what binds a pod to this node, by the pod's UID
};

// Returns true if the pod is parked, or if it was parked before and its next eviction is due or in flight. So a pod
// keeps its diagnosis until a retry has succeeded.
bool is_held(const TrackedPod& tracked);

// Returns the scope of a diagnosis because of which these pods wait.
Scope about(std::span<const TrackedPod* const> pods);

// If the deletion of a namespace takes longer than this, something prevents it.
inline constexpr Duration namespace_hold = std::chrono::minutes(5);

// Return a single diagnosis, for callers that detect its condition in other ways: OverlappingBudgets, DoNotDisrupt,
// LocalVolume and NamespaceStuckTerminating. For the last, `pods` are pods of the namespace (at least one), and
// `cause` is what the deletion of the namespace waits for, or empty.
DiagnosisFact overlap_fact(const k8s::Pod& pod, std::string message);
DiagnosisFact protected_fact(const k8s::Pod& pod, const std::string& message);
DiagnosisFact local_volume_fact(const k8s::Pod& pod, std::string message);
DiagnosisFact namespace_fact(const std::string& ns, const std::vector<const k8s::Pod*>& pods, const std::string& cause);

// Returns the diagnosis of a terminating pod that is not deleted. Finalizers are reported as soon as the pod's
// containers have ended, other causes only if the pod is overdue and the node is Ready; otherwise returns nullopt.
// `overdue`: `Pipeline::place_margin` has passed since the end of the pod's grace period.
std::optional<DiagnosisFact> diagnose_leaving(const k8s::Pod& pod, bool overdue, bool node_ready);

// Returns the conditions that hold now. For each pod, at most one of them explains why the pod waits; others are only
// advice (Scope::holds is false).
std::vector<DiagnosisFact> diagnose(const Pipeline& pipeline, const NodeFacts& node, const Known& known = {});

// A clock that differs from the server's by more than this is reported as ClockSkew.
inline constexpr Duration clock_skew_limit = std::chrono::seconds(30);

// Returns the diagnosis KubeletNotReady, for a node that still has pods that must leave.
DiagnosisFact diagnose_not_ready(const std::string& node);

// Appends to `facts` the conditions that concern the node, its kubelet, the right to list its pods, the pod that
// Haulout runs in, and the clock of Haulout's machine.
void diagnose_node(const Pipeline& pipeline, const NodeFacts& node, std::vector<DiagnosisFact>& facts);

// An admission webhook that prevents evictions: input of diagnose_webhook().
struct WebhookCase {
  // Pods whose evictions failed because the webhook denied them or because the server could not call it. Not empty.
  std::vector<const TrackedPod*> held;
  const std::map<std::string, TrackedPod>& pods;  // all pods seen on this node, also deleted ones, by UID
  // The Service in front of the webhook's servers. nullptr: not known. nullopt: it does not exist.
  const std::optional<k8s::Service>* service = nullptr;
};

// Returns the diagnosis of the webhook, with a remedy that depends on whether its pods are on this node.
DiagnosisFact diagnose_webhook(const WebhookCase& about);

// The following, up to diagnose_budget(), is about a PodDisruptionBudget that allows no eviction. If several causes
// apply, only one is reported. A cause that lasts even if all pods of the budget are healthy has precedence over one
// that ends when they are healthy. There are two exceptions. BudgetDisruptionPending, and BudgetUnhealthyDeadlock if
// all pods that wait for the budget are unhealthy, have precedence over BudgetNeedsAllPods, BudgetOfSinglePod and
// BudgetMisconfigured.

// How long the disruption controller counts a pod of an accepted eviction as disrupted although nothing deletes the pod
// (its `DeletionTimeout`; measured: 120.1 s).
inline constexpr Duration disrupted_pod_limit = std::chrono::minutes(2);
// Extra time after `disrupted_pod_limit`, for the difference between the clocks of API server and disruption
// controller. After it the controller must have removed the pod from `disruptedPods`.
inline constexpr Duration disrupted_pod_margin = std::chrono::seconds(30);
// If `disruptedPods` has more entries than this, the server refuses to evict any pod of the budget
// (`MaxDisruptedPodSize` of its eviction handler).
inline constexpr std::size_t most_disrupted_pods = 2000;
// Hold time of BudgetNotObserved for a budget that the disruption controller has not processed yet. The controller
// normally needs only a moment.
inline constexpr Duration unobserved_hold = std::chrono::seconds(60);

struct BudgetCase {
  const k8s::PodDisruptionBudget& budget;
  std::vector<const k8s::Pod*> held;  // the pods on this node that wait for the budget, as last seen
  WallTime server_now;
  const std::vector<k8s::Pod>* members = nullptr;  // all pods that the budget selects; nullptr: not known
  bool complete = false;                           // the controllers of `held` have as many pods as they want
};

// Returns nullopt if the budget allows a disruption, or will allow one as soon as evictions in progress have ended.
std::optional<DiagnosisFact> diagnose_budget(const BudgetCase& about);

class DiagnosisBoard {
 public:
  struct Changes {
    std::vector<Diagnosis> raised;
    std::vector<Diagnosis> withdrawn;
  };
  Changes update(const std::vector<DiagnosisFact>& facts, TimePoint now, WallTime wall);
  // Returns the next time after `now` at which update() may raise a diagnosis whose condition holds now; max() if none
  // is pending.
  TimePoint next_due(TimePoint now) const;
  std::vector<Diagnosis> active() const;

 private:
  struct Entry {
    Diagnosis diagnosis;
    TimePoint due;
    bool raised = false;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by code and subject
};

}  // namespace haulout::drain
