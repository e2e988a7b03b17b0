// The content of `haulout explain`: what the objects of the API server say about one node, and why its agent does not
// update it now. The agent itself is not asked. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/people/node_view.hpp"
#include "cli/people/pod_views.hpp"
#include "drain/controller_book.hpp"
#include "drain/diagnosis_fact.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

struct AttachedVolume {
  k8s::VolumeAttachment attachment;
  std::string claim;  // "namespace/name" of the claim bound to the volume; empty: none
};

// The objects that Questions (explain_job.hpp) has read about a node. If an object was not asked for or could not be
// read, it is missing here, and `problems` says why.
struct Asked {
  std::map<std::string, k8s::Namespace> dying{};  // namespaces in deletion with pods that must leave; key: name
  // Volumes attached to the node that are being detached, could not be detached, or are not in `held`.
  std::vector<AttachedVolume> volumes{};
  std::set<std::string> held{};  // names of VolumeAttachments whose volumes the Node's status lists
  std::map<std::string, std::string>
      // The local volume that binds a pod to the node. Key: UID of the pod.
      local_volumes{};
  // Top-level controllers, for example a Deployment. Key: UID of the controller that owns the pods directly.
  std::map<std::string, drain::Controller> controllers{};
  std::vector<std::string> problems{};
};

enum class GateState { open, closed, unknown };
std::string_view to_string(GateState state);

struct GateView {
  std::string name;  // pause-node, pause-pool, pause-cluster, backoff, turn, agent
  GateState state = GateState::open;
  std::string message;
  bool operator==(const GateView&) const = default;
};

// The objects from which explain() draws its conclusions. If a `…_problem` is set, it says why the objects before it
// could not be read; those are then empty.
struct NodeFacts {
  k8s::Node node;
  FleetFacts fleet{};
  std::vector<k8s::Pod> pods{};
  std::optional<std::string> pods_problem{};
  std::vector<k8s::PodDisruptionBudget> budgets{};
  std::optional<std::string> budgets_problem{};
  drain::DaemonSetStates daemon_sets{};
  // Results of the check whether the pods fit on other nodes; only with --fit.
  bool fit_asked = false;
  std::vector<placement::PodFit> fits{};
  std::optional<std::string> fits_problem{};
  Asked asked{};
};

struct Explanation {
  WallTime at{};
  NodeView node;
  std::optional<agent::Record> record;
  std::string cordon;  // who cordoned the node; empty: the node is not cordoned
  std::vector<GateView> gates;
  std::vector<PodView> pods;
  std::optional<std::string> pods_problem;
  bool fit_asked = false;
  std::optional<std::string> fits_problem;
  std::vector<BudgetView> budgets;
  std::optional<std::string> budgets_problem;
  std::vector<drain::DiagnosisFact> findings;  // diagnoses that are not in the messages of pods or in `why`
  std::vector<std::string> not_known;          // what could not be read, and why
  std::vector<std::string> why;  // why the agent does not update the node now, deciding reason first; never empty
};

// Returns the UIDs of the pods that a drain has yet to evict. Only these pods need capacity on other nodes.
std::set<std::string> leaving_pods(const NodeFacts& facts, WallTime now);

// Returns the message about a pod whose namespace is being deleted. It names the diagnosis NamespaceStuckTerminating if
// the deletion takes too long.
std::string words_of_dying(const k8s::Namespace& ns, WallTime now);

// Returns the conditions of namespaces, volumes and controllers that would keep a drain of the node from ending, worded
// as a drain words them, sorted by code and subject, each pair once. pod_views.hpp covers single pods and budgets.
// Reports controllers with a single replica whatever the agent's policy for them is, unless an annotation overrides it.
std::vector<drain::DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now);

// Makes the explanation of the node. Judges its pods by the default policy of an agent, whatever the agent's
// configuration is.
Explanation explain(const NodeFacts& facts, WallTime now);

// Returns the explanation as lines, in the style of `kubectl describe`.
std::vector<std::string> explanation_text(const Explanation& explanation);
// Returns the explanation as JSON of kind NodeExplanation, indented, with a line break at its end.
std::string explanation_json(const Explanation& explanation);

}  // namespace haulout::cli
