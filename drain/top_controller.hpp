// Up from a pod's controller to the one that nobody controls: from a ReplicaSet to its Deployment, and no further than
// the kinds of the apps group that are known here.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "drain/controller_book.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

struct TopController {
  k8s::OwnerReference owner;
  std::optional<Controller> controller;  // nothing: `owner` is of a kind that only its Scale tells of
  std::optional<Controller> below;       // then: the ReplicaSet that `owner` controls, in place of it
};

// Reads one of them; how patiently is the caller's choice.
using ReadWorkload = std::function<Task<k8s::Workload>(k8s::OwnerReference owner)>;

// One that does not exist any more, or not under this UID, is `gone`. Fails as `read` fails. Cancellable.
Task<TopController> top_controller(k8s::OwnerReference owner, std::string ns, ReadWorkload read);

}  // namespace haulout::drain
