// The content of `haulout explain`: the state of one node according to the API server, and why its agent does not
// update it now. The agent itself is not contacted. Pure; nothing fails.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/people/views.hpp"
#include "drain/controller_book.hpp"
#include "drain/report.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

struct AttachedVolume {
  k8s::VolumeAttachment attachment;
  std::string claim;  // "namespace/name" of the claim bound to the volume; empty: none
};

// The objects that Questions (explain_job.hpp) has read about a node. If an object could not be read, or was not looked
// up because there are too many, it is missing here, and `problems` says why. If the pods of the node could not be
// listed, nothing was looked up, and only NodeFacts::pods_problem says why.
struct Asked {
  // namespaces that are being deleted and have pods that must leave; key: name
  std::map<std::string, k8s::Namespace> dying{};
  // Volumes attached to the node that are being detached, have a detach error, or are not in `held`.
  std::vector<AttachedVolume> volumes{};
  std::set<std::string> held{};  // names of VolumeAttachments whose volumes the Node's status lists
  std::map<std::string, std::string>
      // The local volume that binds a pod to the node. Key: UID of the pod.
      local_volumes{};
  // Topmost controllers, for example a Deployment. Key: UID of the direct controller of the pods, for example a
  // ReplicaSet.
  std::map<std::string, drain::Controller> controllers{};
  std::vector<std::string> problems{};
};

enum class GateState { open, closed, unknown };
std::string_view to_string(GateState state);

// A gate as `explain` shows it.
struct GateView {
  std::string name;  // pause-node, pause-pool, pause-cluster, backoff, slot, or agent: all gates that only the agent
                     // can evaluate (windows, blocking pods, alerts, reboot limit, other nodes)
  GateState state = GateState::open;
  std::string message;
  bool operator==(const GateView&) const = default;
};

// The input of explain(). If a member `…_problem` is set, it contains the error, and the member directly before it
// could not be read and is empty.
struct NodeFacts {
  k8s::Node node;
  FleetFacts fleet{};
  std::vector<k8s::Pod> pods{};
  std::optional<std::string> pods_problem{};
  std::vector<k8s::PodDisruptionBudget> budgets{};
  std::optional<std::string> budgets_problem{};
  drain::DaemonSetStates daemon_sets{};
  // The results of the check whether the pods fit on other nodes. Only --fit runs this check.
  bool fit_asked = false;
  std::vector<placement::PodFit> fits{};
  std::optional<std::string> fits_problem{};
  Asked asked{};
};

struct Explanation {
  WallTime at{};
  NodeView node;
  std::optional<agent::Record> record;
  std::string cordon;  // which user or program cordoned the node; empty: the node is not cordoned
  std::vector<GateView> gates;
  std::vector<PodView> pods;
  std::optional<std::string> pods_problem;
  bool fit_asked = false;
  std::optional<std::string> fits_problem;
  std::vector<BudgetView> budgets;
  std::optional<std::string> budgets_problem;
  std::vector<drain::DiagnosisFact> findings;  // diagnoses about namespaces, volumes and controllers: findings_of()
  // What is not known: objects that could not be read, with the errors, and what only an eviction would show.
  std::vector<std::string> not_known;
  // Why the agent does not update the node now, the decisive reason first; never empty.
  std::vector<std::string> why;
};

// Returns the UIDs of the pods that must leave the node, also of those that policy parks or refuses, but not of pods
// that are already terminating. Only these pods need capacity on other nodes.
std::set<std::string> leaving_pods(const NodeFacts& facts, WallTime now);

// Returns the message about a pod whose namespace is being deleted. The message contains the code of the diagnosis
// NamespaceStuckTerminating if the deletion takes too long.
std::string words_of_dying(const k8s::Namespace& ns, WallTime now);

// Returns the diagnoses about namespaces, volumes and controllers that a drain of the node would report, with the
// messages of a drain. They are sorted by code and subject, without duplicates. Diagnoses about single pods and budgets
// are not among them: pod_views() has them in the messages of the pods. Controllers with a single replica are always
// reported as with the policy `warn`, unless an annotation overrides that.
std::vector<drain::DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now);

// Returns the explanation of the node, with findings_of() in it. Judges the pods by the default policy of an agent,
// because the agent's configuration is not known here.
Explanation explain(const NodeFacts& facts, WallTime now);

// Returns the explanation as lines, in the style of `kubectl describe`.
std::vector<std::string> explanation_text(const Explanation& explanation);
// Returns the explanation as JSON of kind NodeExplanation, indented, with a line break at its end.
std::string explanation_json(const Explanation& explanation);

}  // namespace haulout::cli
