#include "sim/scheduler.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

bool node_ready(const Json& node) {
  const Json& ready = condition(node, "Ready");
  return ready.is_null() || text(ready, "/status") == "True";
}

bool fits(const Json& pod, const Json& node) {
  if (terminating(node) || !node_ready(node)) return false;
  if (flag(node, "/spec/unschedulable") && !tolerates(pod, "node.kubernetes.io/unschedulable", "NoSchedule"))
    return false;
  for (const Json& taint : at(node, "/spec/taints")) {
    const std::string effect = text(taint, "/effect");
    if (effect != "PreferNoSchedule" && !tolerates(pod, text(taint, "/key"), effect)) return false;
  }
  const Json& wanted = at(pod, "/spec/nodeSelector");
  if (wanted.is_object())
    for (const auto& [key, value] : wanted.items()) {
      const Json& labels = at(node, "/metadata/labels");
      if (!labels.is_object() || !labels.contains(key) || labels[key] != value) return false;
    }
  return true;
}

bool waits_for_node(const Json& pod) {
  return text(pod, "/spec/nodeName").empty() && !terminating(pod) && !pod_finished(pod);
}

}  // namespace

Scheduler::Scheduler(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource == "nodes") return retry_later();
    if (change.key.resource != "pods") return;
    const std::string uid = uid_of(*change.object);
    if (change.type == ChangeType::added && waits_for_node(*change.object) && under_way_.emplace(uid, "").second)
      world_.agenda.after(Duration::zero(), [this, key = change.key, uid] { consider(key, uid); });
  });
}

void Scheduler::retry_later() {
  if (std::exchange(retry_planned_, true)) return;
  world_.agenda.after(world_.timing.scheduler_lag, [this] {
    retry_planned_ = false;
    retry();
  });
}

void Scheduler::retry() {
  for (const Object& pod : world_.store.list("pods"))
    if (waits_for_node(*pod) && under_way_.emplace(uid_of(*pod), "").second)
      consider({"pods", ns_of(*pod), name_of(*pod)}, uid_of(*pod));
}

void Scheduler::consider(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  const bool wanted = world_.switches.scheduler && pod && uid_of(*pod) == uid && waits_for_node(*pod);
  const std::string node = wanted ? choose(*pod) : std::string();
  if (node.empty()) {
    under_way_.erase(uid);
    if (wanted) mark_unschedulable(key, *pod);
    return;
  }
  under_way_[uid] = node;
  world_.agenda.after(world_.timing.scheduler_lag, [this, key, uid, node] { bind(key, uid, node); });
}

std::string Scheduler::choose(const Json& pod) const {
  std::map<std::string, std::size_t> load;
  for (const Object& node : world_.store.list("nodes"))
    if (fits(pod, *node)) load[name_of(*node)] = 0;
  std::string preferred = annotation(pod, "sim.haulout.dev/prefers-node");
  if (load.count(preferred)) return preferred;
  for (const Object& other : world_.store.list("pods")) {
    const auto node = load.find(text(*other, "/spec/nodeName"));
    if (node != load.end()) ++node->second;
  }
  for (const auto& [uid, node] : under_way_)
    if (load.count(node)) ++load[node];
  const auto least = std::min_element(load.begin(), load.end(),
                                      [](const auto& one, const auto& other) { return one.second < other.second; });
  return least == load.end() ? std::string() : least->first;
}

void Scheduler::bind(const Key& key, const std::string& uid, const std::string& node) {
  under_way_.erase(uid);
  const Object pod = world_.store.get(key);
  if (!pod || uid_of(*pod) != uid || !waits_for_node(*pod)) return;
  if (!world_.store.get({"nodes", "", node})) return retry_later();
  world_.store.modify(key, [&](Json& next) {
    next["spec"]["nodeName"] = node;
    set_condition(next, {{"type", "PodScheduled"}, {"status", "True"}}, world_.wall_now());
  });
}

void Scheduler::mark_unschedulable(const Key& key, const Json& pod) {
  if (text(condition(pod, "PodScheduled"), "/status") == "False") return;
  world_.store.modify(key, [&](Json& next) {
    const std::size_t nodes = world_.store.list("nodes").size();
    set_condition(next,
                  {{"type", "PodScheduled"},
                   {"status", "False"},
                   {"reason", "Unschedulable"},
                   {"message", fmt::format("0/{} nodes are available", nodes)}},
                  world_.wall_now());
  });
}

}  // namespace haulout::sim
