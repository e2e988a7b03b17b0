#include "drain/controllers.hpp"

#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

// Returns true if the number of replicas can be read from the object itself. For all other kinds only the Scale
// subresource has it, if the kind has a Scale.
bool is_apps_workload(const k8s::OwnerReference& owner) {
  return owner.api_version == "apps/v1" &&
         (owner.kind == "Deployment" || owner.kind == "ReplicaSet" || owner.kind == "StatefulSet");
}

}  // namespace

Controller nothing_known_of(const k8s::OwnerReference& owner, const std::string& ns, std::string why) {
  Controller controller;
  controller.ns = ns;
  controller.api_version = owner.api_version;
  controller.kind = owner.kind;
  controller.name = owner.name;
  controller.uid = owner.uid;
  controller.unknown = std::move(why);
  return controller;
}

Controller gone_controller(const k8s::OwnerReference& owner, const std::string& ns) {
  Controller controller = nothing_known_of(owner, ns, "it does not exist any more");
  controller.gone = true;
  return controller;
}

Controller without_scale(const k8s::OwnerReference& owner, const std::string& ns, std::string why) {
  Controller controller = nothing_known_of(owner, ns, std::move(why));
  controller.cannot_scale = true;
  return controller;
}

Controller controller_of(const k8s::OwnerReference& owner, const std::string& ns, k8s::Workload workload) {
  Controller controller = nothing_known_of(owner, ns, "");
  controller.replicas = workload.replicas;
  controller.ready_replicas = workload.ready_replicas;
  controller.annotations = std::move(workload.annotations);
  return controller;
}

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
