// Finds the topmost controller of a pod, for example the Deployment above its ReplicaSet. Reads only Deployments,
// ReplicaSets and StatefulSets of apps/v1, and stops at an owner of any other kind.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "drain/controller_book.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

struct TopController {
  k8s::OwnerReference owner;
  std::optional<Controller> controller;  // nothing: `owner` is of another kind, and was not read
  std::optional<Controller> below;  // then: the ReplicaSet that `owner` controls, if there is one; may stand for it
};

// Reads one controller object. The caller decides whether and how often it retries.
using ReadWorkload = std::function<Task<k8s::Workload>(k8s::OwnerReference owner)>;

// Starts at `owner`, the pod's own controller. If an object does not exist any more, or has another UID, the result has
// a controller that is `gone`. Fails with any other error of `read`. Cancellable.
Task<TopController> top_controller(k8s::OwnerReference owner, std::string ns, ReadWorkload read);

}  // namespace haulout::drain
