#include "sim/scheduler.hpp"

#include "placement/room.hpp"
#include "sim/volumes.hpp"

namespace haulout::sim {
namespace {

// Sets status.nominatedNodeName, or removes it if `node` is empty. The pod must have a status object.
void nominate(Json& pod, const std::string& node) {
  if (node.empty())
    pod["status"].erase("nominatedNodeName");
  else
    pod["status"]["nominatedNodeName"] = node;
}

// Returns true if the room that a pod takes, and the pods that it keeps away, are the same after a change.
bool needs_the_same(const Json& before, const Json& after) {
  constexpr const char* claims = "/status/extendedResourceClaimStatus";
  return at(before, "/spec") == at(after, "/spec") && at(before, "/metadata/labels") == at(after, "/metadata/labels") &&
         at(before, claims) == at(after, claims) && pod_finished(before) == pod_finished(after);
}

}  // namespace

Scheduler::Scheduler(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    note(change);
    if (change.key.resource == "nodes") return retry_later();
    if (change.key.resource != "pods") return;
    if (change.type == ChangeType::deleted && no_room_) return retry_later();
    const std::string uid = uid_of(*change.object);
    const bool is_new = change.type == ChangeType::added || (change.restored && change.type != ChangeType::deleted);
    if (is_new && waits_for_node(*change.object) && under_way_.emplace(uid, "").second)
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
  for (const Object& pod : world_.store.list("pods", {}, By::node, ""))
    if (waits_for_node(*pod) && under_way_.emplace(uid_of(*pod), "").second)
      consider({"pods", ns_of(*pod), name_of(*pod)}, uid_of(*pod));
}

void Scheduler::note(const Change& change) {
  if (!room_) return;
  if (change.key.resource == "nodes") {
    if (change.type != ChangeType::modified) return room_.reset();
    room_->renew(change.object);
  } else if (change.key.resource == "pods") {
    settle(change.key);
  }
}

// Builds `room_` from the store. Nodes without status.allocatable have unlimited capacity.
void Scheduler::build_room() {
  room_.emplace(world_.store.list("nodes"), placement::Room::Unstated::no_end);
  standing_.clear();
  for (const Object& pod : world_.store.list("pods")) settle({"pods", ns_of(*pod), name_of(*pod)});
}

void Scheduler::settle(const Key& key) {
  if (!room_) return;
  const Object pod = world_.store.get(key);
  const auto chosen = pod ? under_way_.find(uid_of(*pod)) : under_way_.end();
  std::string node = pod ? text(*pod, "/spec/nodeName") : std::string();
  if (node.empty() && chosen != under_way_.end()) node = chosen->second;
  if (const auto stood = standing_.find(key); stood != standing_.end()) {
    if (pod && stood->second.node == node && needs_the_same(*stood->second.pod, *pod)) {
      room_->renew(stood->second.pod, pod, node);
      stood->second.pod = pod;
      return;
    }
    room_->take(stood->second.pod, stood->second.node);
    standing_.erase(stood);
  }
  if (node.empty()) return;
  room_->put(pod, node);
  standing_[key] = {pod, std::move(node)};
}

void Scheduler::consider(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  const bool waiting = world_.switches.scheduler && pod && uid_of(*pod) == uid && waits_for_node(*pod);
  const bool gated = waiting && placement::has_scheduling_gates(*pod);
  const bool wanted = waiting && !gated;
  if (wanted && !room_) build_room();
  const placement::Place found =
      wanted ? room_->find(*pod, annotation(*pod, "sim.haulout.dev/prefers-node"), volumes_of(world_.store, *pod))
             : placement::Place();
  if (found.node.empty()) {
    under_way_.erase(uid);
    no_room_ = no_room_ || wanted;
    if (wanted) mark_unscheduled(key, *pod, "Unschedulable", found.message, found.preempts_on);
    if (gated)
      mark_unscheduled(key, *pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", {});
    return;
  }
  under_way_[uid] = found.node;
  settle(key);
  world_.agenda.after(world_.timing.scheduler_lag, [this, key, uid, node = found.node] { bind(key, uid, node); });
}

void Scheduler::bind(const Key& key, const std::string& uid, const std::string& node) {
  under_way_.erase(uid);
  settle(key);
  const Object pod = world_.store.get(key);
  if (!pod || uid_of(*pod) != uid || !waits_for_node(*pod)) return;
  if (!world_.store.get({"nodes", "", node})) return retry_later();
  world_.store.modify(key, [&](Json& next) {
    next["spec"]["nodeName"] = node;
    set_condition(next, object_of({{"type", "PodScheduled"}, {"status", "True"}}), world_.wall_now());
    nominate(next, {});
  });
}

void Scheduler::mark_unscheduled(const Key& key, const Json& pod, const std::string& reason, const std::string& why,
                                 const std::string& nominated) {
  const Json& scheduled = condition(pod, "PodScheduled");
  if (text(scheduled, "/status") == "False" && text(scheduled, "/message") == why &&
      text(pod, "/status/nominatedNodeName") == nominated)
    return;
  world_.store.modify(key, [&](Json& next) {
    set_condition(next, {{"type", "PodScheduled"}, {"status", "False"}, {"reason", reason}, {"message", why}},
                  world_.wall_now());
    nominate(next, nominated);
  });
}

}  // namespace haulout::sim
