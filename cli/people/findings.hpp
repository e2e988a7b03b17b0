// What `haulout explain` finds besides what pods and budgets say of themselves: the findings that a drain would raise,
// in its words. Pure: cli/people/questions.hpp asks.
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
  std::string claim;  // "namespace/name" of the claim that has it; empty: none
};

// The answers. A problem: what was not asked for, or may not be read, and why; then nothing is known of it.
struct Asked {
  std::map<std::string, k8s::Namespace> dying{};  // of pods that leave, by name
  // Attached to the node, and being detached, in trouble, or nobody's by the Node's status.
  std::vector<AttachedVolume> volumes{};
  std::set<std::string> held{};                            // VolumeAttachments that are somebody's by that status
  std::map<std::string, std::string> local_volumes{};      // of pods that leave, by UID: what binds them to the node
  std::map<std::string, drain::Controller> controllers{};  // of pods that leave, by the UID of a pod's own one
  std::vector<std::string> problems{};
};

// What is waited for where a namespace is dying, as the end of "pod … is"; by whether it has died for too long.
std::string words_of_dying(const k8s::Namespace& ns, WallTime now);

// By code and subject. Of a single replica it is said whatever the policy is.
std::vector<drain::DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now);

}  // namespace haulout::cli
