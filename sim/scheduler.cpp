#include "sim/scheduler.hpp"

#include "placement/room.hpp"

namespace haulout::sim {
Scheduler::Scheduler(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource == "nodes") return retry_later();
    if (change.key.resource != "pods") return;
    if (change.type == ChangeType::deleted && no_room_) return retry_later();
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
  no_room_ = false;
  for (const Object& pod : world_.store.list("pods"))
    if (waits_for_node(*pod) && under_way_.emplace(uid_of(*pod), "").second)
      consider({"pods", ns_of(*pod), name_of(*pod)}, uid_of(*pod));
}

// Nodes that state nothing allocatable have room without end.
placement::Place Scheduler::find_room(const Json& pod) const {
  placement::Room room(world_.store.list("nodes"), placement::Room::Unstated::no_end);
  for (const Object& other : world_.store.list("pods")) {
    const auto chosen = under_way_.find(uid_of(*other));
    const std::string node = text(*other, "/spec/nodeName");
    if (!node.empty())
      room.put(other, node);
    else if (chosen != under_way_.end())
      room.put(other, chosen->second);
  }
  return room.find(pod, annotation(pod, "sim.haulout.dev/prefers-node"));
}

void Scheduler::consider(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  const bool wanted = world_.switches.scheduler && pod && uid_of(*pod) == uid && waits_for_node(*pod);
  const placement::Place found = wanted ? find_room(*pod) : placement::Place();
  if (found.node.empty()) {
    under_way_.erase(uid);
    no_room_ = no_room_ || wanted;
    if (wanted) mark_unschedulable(key, *pod, found.message);
    return;
  }
  under_way_[uid] = found.node;
  world_.agenda.after(world_.timing.scheduler_lag, [this, key, uid, node = found.node] { bind(key, uid, node); });
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

void Scheduler::mark_unschedulable(const Key& key, const Json& pod, const std::string& why) {
  const Json& scheduled = condition(pod, "PodScheduled");
  if (text(scheduled, "/status") == "False" && text(scheduled, "/message") == why) return;
  world_.store.modify(key, [&](Json& next) {
    set_condition(next, {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", why}},
                  world_.wall_now());
  });
}

}  // namespace haulout::sim
