#include "sim/controllers.hpp"

#include <algorithm>
#include <array>

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
    // A restored object may be in a terminating namespace whose objects were already deleted, so empty the namespace
    // again.
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

namespace {

// The kinds of objects that the collector handles.
constexpr std::array<std::string_view, 4> collected = {"leases", "csinodes", "evictionrequests", "evictions"};

bool is_collected(std::string_view resource) {
  return std::find(collected.begin(), collected.end(), resource) != collected.end();
}

bool owned_by(const Json& object, const std::string& uid) {
  const Json& owners = at(object, "/metadata/ownerReferences");
  return std::any_of(owners.begin(), owners.end(), [&](const Json& owner) { return text(owner, "/uid") == uid; });
}

}  // namespace

OwnerGarbageCollector::OwnerGarbageCollector(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) { on_change(change); });
}

void OwnerGarbageCollector::on_change(const Change& change) {
  const Timing& timing = world_.timing;
  if (change.type == ChangeType::deleted) {
    const std::string uid = uid_of(*change.object);
    for (const std::string_view resource : collected)
      for (const Object& object : world_.store.list(resource))
        if (owned_by(*object, uid)) plan(resource, *object, timing.gc_lag, timing.gc_jitter);
    return;
  }
  if (!is_collected(change.key.resource) || !orphaned(*change.object)) return;
  constexpr const char* owners = "/metadata/ownerReferences";
  const bool same_owners = change.before && at(*change.before, owners) == at(*change.object, owners);
  if (!same_owners) plan(change.key.resource, *change.object, timing.dead_owner_lag, timing.dead_owner_jitter);
}

bool OwnerGarbageCollector::orphaned(const Json& object) const {
  const Json& owners = at(object, "/metadata/ownerReferences");
  const auto gone = [&](const Json& owner) {
    const ResourceInfo* info = find_kind(text(owner, "/kind"));
    if (!info) return false;  // owners of unknown kinds count as existing
    const Object found = world_.store.get(
        {std::string(info->resource), info->namespaced ? ns_of(object) : std::string(), text(owner, "/name")});
    return !found || uid_of(*found) != text(owner, "/uid");
  };
  return !owners.empty() && std::all_of(owners.begin(), owners.end(), gone);
}

void OwnerGarbageCollector::plan(std::string_view resource, const Json& object, Duration lag, Duration jitter) {
  world_.agenda.after(lag + world_.rng.between(Duration::zero(), jitter),
                      [this, key = Key{std::string(resource), ns_of(object), name_of(object)}, uid = uid_of(object)] {
                        collect(key, uid);
                      });
}

void OwnerGarbageCollector::collect(const Key& key, const std::string& uid) {
  const Object object = world_.store.get(key);
  if (!world_.switches.garbage_collector || !object || uid_of(*object) != uid || !orphaned(*object)) return;
  delete_gracefully(world_, key, std::nullopt);
}

void OwnerGarbageCollector::resync() {
  for (const std::string_view resource : collected)
    for (const Object& object : world_.store.list(resource))
      if (orphaned(*object)) plan(resource, *object, world_.timing.gc_lag, world_.timing.gc_jitter);
}

EventExpiry::EventExpiry(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "events" || change.type == ChangeType::deleted) return;
    world_.agenda.after(world_.timing.event_ttl,
                        [this, key = change.key, version = text(*change.object, "/metadata/resourceVersion")] {
                          expire(key, version);
                        });
  });
}

void EventExpiry::expire(const Key& key, const std::string& version) {
  const Object event = world_.store.get(key);
  if (event && text(*event, "/metadata/resourceVersion") == version) world_.store.remove(key);
}

}  // namespace haulout::sim
