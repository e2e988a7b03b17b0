// The diagnoses of `haulout explain` beside those of single pods and budgets: the ones that a drain would raise, in the
// same words. Pure; cli/people/questions.hpp reads the objects.
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
  std::string claim;  // "namespace/name" of the claim that is bound to it; empty: none
};

// What Questions has read. `problems` says what was not asked for or could not be read, and why; nothing is known of
// that.
struct Asked {
  std::map<std::string, k8s::Namespace> dying{};  // namespaces in deletion with pods that must leave, by name
  // Volumes attached to the node that are being detached, could not be detached, or are not in `held`.
  std::vector<AttachedVolume> volumes{};
  std::set<std::string> held{};  // names of VolumeAttachments whose volumes the Node's status lists
  std::map<std::string, std::string> local_volumes{};      // what binds a pod to the node, by UID of the pod
  std::map<std::string, drain::Controller> controllers{};  // top controllers, by UID of the pod's own controller
  std::vector<std::string> problems{};
};

// The message about a pod whose namespace is being deleted. It names the diagnosis NamespaceStuckTerminating if the
// deletion takes too long.
std::string words_of_dying(const k8s::Namespace& ns, WallTime now);

// Diagnoses in the order of code and subject, each pair once. Reports single replicas whatever the agent's policy for
// them is, unless an annotation overrides it.
std::vector<drain::DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now);

}  // namespace haulout::cli
