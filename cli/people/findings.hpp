// Finds diagnoses for `haulout explain`: conditions of namespaces, volumes and controllers that would keep a drain of
// the node from ending, worded as a drain words them. pod_views.hpp covers single pods and budgets. Pure;
// cli/people/questions.hpp reads the objects.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/controller_book.hpp"
#include "drain/diagnosis_fact.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

struct NodeFacts;

struct AttachedVolume {
  k8s::VolumeAttachment attachment;
  std::string claim;  // "namespace/name" of the claim bound to the volume; empty: none
};

// The objects that Questions (questions.hpp) has read about a node. If an object was not asked for or could not be
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

// Returns the message about a pod whose namespace is being deleted. It names the diagnosis NamespaceStuckTerminating if
// the deletion takes too long.
std::string words_of_dying(const k8s::Namespace& ns, WallTime now);

// Returns the diagnoses sorted by code and subject, each pair once. Reports controllers with a single replica whatever
// the agent's policy for them is, unless an annotation overrides it.
std::vector<drain::DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now);

}  // namespace haulout::cli
