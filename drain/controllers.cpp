#include "drain/controllers.hpp"

namespace haulout::drain {

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

}  // namespace haulout::drain
