#include "drain/top_controller.hpp"

#include "drain/controllers.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

// For all other kinds, only the Scale subresource has the number of replicas, if the kind has a Scale.
bool is_apps_workload(const k8s::OwnerReference& owner) {
  return owner.api_version == "apps/v1" &&
         (owner.kind == "Deployment" || owner.kind == "ReplicaSet" || owner.kind == "StatefulSet");
}

}  // namespace

Task<TopController> top_controller(k8s::OwnerReference owner, std::string ns, ReadWorkload read) {
  std::optional<Controller> below;
  while (is_apps_workload(owner)) {
    auto found = co_await read(owner);
    if (!found && !k8s::is_gone(found.error())) co_return std::move(found).error();
    if (!found || found->uid != owner.uid) co_return TopController{owner, gone_controller(owner, ns), {}};
    if (owner.kind != "ReplicaSet" || !found->controller)
      co_return TopController{owner, controller_of(owner, ns, *std::move(found)), {}};
    const k8s::OwnerReference above = *found->controller;
    below = controller_of(owner, ns, *std::move(found));
    below->in_place_of = above.uid;
    owner = above;
  }
  co_return TopController{owner, {}, std::move(below)};
}

}  // namespace haulout::drain
