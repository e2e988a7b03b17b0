// Finds the topmost controller of a pod, for example the Deployment above the pod's ReplicaSet.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// A topmost controller, as it was looked up.
struct Controller {
  std::string ns;
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<std::int32_t> replicas;
  std::int32_t ready_replicas = 0;
  std::map<std::string, std::string> annotations;
  std::string unknown;  // why its number of replicas is not known; empty: it is known
  bool gone = false;    // it was deleted, so nothing replaces its pods
  // Its kind has no number of replicas, or its API is not served. It is unknown whether it replaces its pods: a
  // StrimziPodSet does, a workflow does not.
  bool cannot_scale = false;
  std::string in_place_of;  // UID of the controller above it, whose kind has no replicas; empty: it is at the top

  std::string text() const { return kind + " " + ns + "/" + name; }
};

// Make the result of a look-up: from the object that was read, for an object that does not exist, and for an object
// that could not be read for the reason `why`. Pure.
Controller controller_of(const k8s::OwnerReference& owner, const std::string& ns, k8s::Workload workload);
Controller gone_controller(const k8s::OwnerReference& owner, const std::string& ns);
Controller nothing_known_of(const k8s::OwnerReference& owner, const std::string& ns, std::string why);
// Makes the result for a controller whose kind has no number of replicas, or whose API is not served. Pure.
Controller without_scale(const k8s::OwnerReference& owner, const std::string& ns, std::string why);

struct TopController {
  k8s::OwnerReference owner;
  std::optional<Controller> controller;  // nullopt: `owner` is of another kind and was not read
  std::optional<Controller> below;       // in that case: the ReplicaSet that `owner` controls; it may stand for `owner`
};

// Reads one controller object. The caller decides whether and how often it retries.
using ReadWorkload = std::function<Task<k8s::Workload>(k8s::OwnerReference owner)>;

// Finds the topmost controller. Starts at `owner`, the pod's own controller. Reads only Deployments, ReplicaSets and
// StatefulSets of apps/v1, and stops at an owner of any other kind. If an object does not exist any more, or has
// another UID, the result has a controller that is `gone`. Fails with any other error of `read`. Cancellable.
Task<TopController> top_controller(k8s::OwnerReference owner, std::string ns, ReadWorkload read);

}  // namespace haulout::drain
