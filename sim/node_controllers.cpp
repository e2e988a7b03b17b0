#include "sim/node_controllers.hpp"

#include "k8s/codec.hpp"
#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {
namespace {
constexpr const char* unschedulable = "node.kubernetes.io/unschedulable";
}

NodeLifecycle::NodeLifecycle(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "nodes" || change.type == ChangeType::deleted) return;
    if (change.before && !change.restored &&
        flag(*change.before, "/spec/unschedulable") == flag(*change.object, "/spec/unschedulable"))
      return;
    world_.agenda.after(world_.timing.taint_lag, [this, node = change.key.name] { sync(node); });
  });
}

void NodeLifecycle::sync(const std::string& node) {
  world_.store.modify({"nodes", "", node}, [&](Json& next) {
    const bool wanted = flag(next, "/spec/unschedulable");
    Json kept = Json::array();
    bool present = false;
    for (const Json& taint : at(next, "/spec/taints")) {
      const bool ours = text(taint, "/key") == unschedulable && text(taint, "/effect") == "NoSchedule";
      present = present || ours;
      if (!ours || wanted) kept.push_back(taint);
    }
    if (wanted && !present)
      kept.push_back(
          {{"key", unschedulable}, {"effect", "NoSchedule"}, {"timeAdded", k8s::format_time(world_.wall_now())}});
    if (!kept.empty())
      next["spec"]["taints"] = std::move(kept);
    else if (next.contains("spec"))
      next["spec"].erase("taints");
  });
}

PodGarbageCollector::PodGarbageCollector(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "nodes" || change.type != ChangeType::deleted) return;
    world_.agenda.after(world_.timing.pod_gc_lag, [this, node = change.key.name] { collect(node); });
  });
}

void PodGarbageCollector::collect(const std::string& node) {
  if (world_.store.get({"nodes", "", node})) return;
  for (const Object& pod : world_.store.list("pods", {}, By::node, node))
    delete_gracefully(world_, {"pods", ns_of(*pod), name_of(*pod)}, 0);
}

NamespaceController::NamespaceController(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource == "namespaces" && change.type != ChangeType::deleted && terminating(*change.object))
      world_.agenda.after(world_.timing.namespace_lag, [this, ns = change.key.name] { empty(ns); });
    // A restored object may be in a terminating namespace that was already emptied.
    if (change.restored && !change.key.ns.empty())
      world_.agenda.after(world_.timing.namespace_lag, [this, ns = change.key.ns] { empty(ns); });
    if (change.type == ChangeType::deleted && !change.key.ns.empty())
      world_.agenda.after(Duration::zero(), [this, ns = change.key.ns] { finish(ns); });
  });
}

void NamespaceController::empty(const std::string& ns) {
  const Object object = world_.store.get({"namespaces", "", ns});
  if (!object || !terminating(*object)) return;
  for (const ResourceInfo& info : all_resources()) {
    if (!info.namespaced) continue;
    for (const Object& one : world_.store.list(info.resource, ns))
      if (!terminating(*one)) delete_gracefully(world_, {std::string(info.resource), ns, name_of(*one)}, std::nullopt);
  }
  finish(ns);
}

void NamespaceController::finish(const std::string& ns) {
  const Object object = world_.store.get({"namespaces", "", ns});
  if (!object || !terminating(*object)) return;
  for (const ResourceInfo& info : all_resources())
    if (info.namespaced && !world_.store.list(info.resource, ns).empty()) return;
  world_.store.remove({"namespaces", "", ns});
}

}  // namespace haulout::sim
