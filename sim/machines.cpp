#include "sim/machines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/codec.hpp"
#include "k8s/objects.hpp"
#include "sim/pod_lifecycle.hpp"
#include "sim/volumes.hpp"

namespace haulout::sim {
namespace {

void set_containers(Json& pod, const char* state, Json details, bool ready) {
  Json statuses = Json::array();
  for (const Json& container : at(pod, "/spec/containers"))
    statuses.push_back(object_of({{"name", container.value("name", "app")},
                                  {"image", container.value("image", "")},
                                  {"ready", ready},
                                  {"restartCount", 0},
                                  {"state", object_of({{state, details}})}}));
  pod["status"]["containerStatuses"] = std::move(statuses);
}

// Marks the pod and its containers as failed, as the kubelet does before the final delete, even if the pod never
// started. Leaves a finished pod unchanged.
void set_ended(Json& pod, WallTime now) {
  if (pod_finished(pod)) return;
  const int exit_code = text(pod, "/status/phase") == "Running" ? 143 : 137;
  set_containers(pod, "terminated", {{"exitCode", exit_code}, {"finishedAt", k8s::format_time(now)}}, false);
  pod["status"]["phase"] = "Failed";
}

// A pod that still exists this long after its grace period counts as stuck. Same value as `place_margin` in
// drain/pipeline.hpp.
constexpr Duration overdue = std::chrono::seconds(60);

Duration grace_of(const Json& pod) {
  return k8s::grace_period(number(pod, "/metadata/deletionGracePeriodSeconds"));
}

bool never_stops(const Json& pod) {
  return is_mirror(pod) || !annotation(pod, "sim.haulout.dev/never-terminates").empty();
}

}  // namespace

Kubelet::Kubelet(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource == "volumeattachments" && flag(*change.object, "/status/attached"))
      return volume_attached(text(*change.object, "/spec/nodeName"));
    if (change.key.resource != "pods") return;
    // The restored state may be older than the request to stop the pod, so the kubelet forgets that request.
    if (change.restored) stopping_.erase(uid_of(*change.object));
    if (change.type == ChangeType::deleted) {
      stopping_.erase(uid_of(*change.object));
      starting_.erase(uid_of(*change.object));
    } else if (change.type == ChangeType::added && !change.restored && terminating(*change.object)) {
      plan_loaded_stop(change.key, *change.object);
    } else {
      look(change.key, *change.object);
    }
  });
}

bool Kubelet::stopped_kubelet(const Json& pod) const {
  return world_.switches.stopped_kubelets.count(text(pod, "/spec/nodeName")) > 0;
}

void Kubelet::resync(const std::string& node) {
  for (const Object& pod : world_.store.list("pods", {}, By::node, node))
    look({"pods", ns_of(*pod), name_of(*pod)}, *pod);
}

void Kubelet::look(const Key& key, const Json& pod) {
  if (text(pod, "/spec/nodeName").empty() || stopped_kubelet(pod)) return;
  if (terminating(pod))
    plan_stop(key, pod);
  else if (text(pod, "/status/phase") == "Pending")
    plan_start(key, pod);
}

void Kubelet::volume_attached(const std::string& node) {
  if (!world_.switches.pods_wait_for_volumes) return;
  for (const Object& pod : world_.store.list("pods", {}, By::node, node))
    if (!terminating(*pod)) look({"pods", ns_of(*pod), name_of(*pod)}, *pod);
}

void Kubelet::plan_start(const Key& key, const Json& pod) {
  if (world_.switches.pods_wait_for_volumes && !not_attached(world_.store, pod).empty()) return;
  const std::string uid = uid_of(pod);
  if (!starting_.emplace(uid, true).second) return;
  world_.agenda.after(annotated(pod, "sim.haulout.dev/starts-after", world_.timing.pod_start),
                      [this, key, uid] { start(key, uid); });
}

void Kubelet::start(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  starting_.erase(uid);
  if (!pod || uid_of(*pod) != uid || terminating(*pod) || stopped_kubelet(*pod)) return;
  world_.store.modify(key, [&](Json& next) {
    const WallTime now = world_.wall_now();
    const bool ready = annotation(next, "sim.haulout.dev/never-ready").empty();
    next["status"]["phase"] = "Running";
    if (!next["status"].contains("startTime")) next["status"]["startTime"] = k8s::format_time(now);
    for (const char* type : {"Initialized", "Ready", "ContainersReady"}) {
      const bool holds = ready || std::string_view(type) == "Initialized";
      set_condition(next, object_of({{"type", type}, {"status", holds ? "True" : "False"}}), now);
    }
    set_containers(next, "running", {{"startedAt", k8s::format_time(now)}}, ready);
  });
}

// Returns the time from the request to stop the pod to the final delete, at most its grace period.
Duration Kubelet::wanted(const Json& pod) const {
  const Duration grace = grace_of(pod);
  const auto share = std::min(std::chrono::duration_cast<Duration>(grace * world_.timing.termination),
                              world_.timing.termination_limit);
  return std::min(annotated(pod, "sim.haulout.dev/terminates-after", share), grace);
}

// Plans the stop of a pod that was loaded while it was terminating. A pod that has already been terminating for longer
// than wanted() takes its whole grace period. A pod that has exceeded its grace period by more than `overdue` never
// stops.
void Kubelet::plan_loaded_stop(const Key& key, const Json& pod) {
  const auto end = k8s::parse_time(text(pod, "/metadata/deletionTimestamp"));
  if (!end || text(pod, "/spec/nodeName").empty() || stopped_kubelet(pod) || never_stops(pod)) return;
  const Duration grace = grace_of(pod), since = world_.wall_now() - *end + grace;
  if (since > grace + overdue) return;
  const Duration left = since < wanted(pod) ? wanted(pod) - since : std::max(grace - since, Duration::zero());
  const TimePoint now = world_.now();
  const std::string uid = uid_of(pod);
  const std::uint64_t plan = ++plans_;
  stopping_[uid] = {now, now + left, plan};
  world_.agenda.at(now + left, [this, key, uid, plan] { stop(key, uid, plan); });
}

void Kubelet::plan_stop(const Key& key, const Json& pod) {
  if (never_stops(pod)) return;
  const std::string uid = uid_of(pod);
  const auto [entry, first] = stopping_.try_emplace(uid);
  Stopping& stopping = entry->second;
  if (stopping.finished) return;
  const TimePoint now = world_.now();
  const Duration grace = grace_of(pod);
  if (first) stopping.asked = now;
  // A shorter grace period counts from the moment of its request, and can only make the stop earlier.
  const TimePoint done = first ? now + wanted(pod) : std::min(stopping.done, now + grace);
  if (!first && done == stopping.done && stopping.plan > 0) return;
  stopping.done = done;
  const std::uint64_t plan = stopping.plan = ++plans_;
  world_.agenda.at(std::max(done, now), [this, key, uid, plan] { stop(key, uid, plan); });
}

void Kubelet::stop(const Key& key, const std::string& uid, std::uint64_t plan) {
  const Object pod = world_.store.get(key);
  const auto stopping = stopping_.find(uid);
  if (!pod || uid_of(*pod) != uid || stopping == stopping_.end() || stopping->second.plan != plan) return;
  if (stopped_kubelet(*pod)) {
    stopping_.erase(stopping);
    return;
  }
  stopping->second.finished = true;
  if (world_.timing.kubelet_report == Duration::zero()) return report_stopped(key, uid);
  TimePoint& busy_until = reporting_until_[text(*pod, "/spec/nodeName")];
  busy_until = std::max(busy_until, world_.now()) + world_.timing.kubelet_report;
  world_.agenda.at(busy_until, [this, key, uid] { report_stopped(key, uid); });
}

void Kubelet::report_stopped(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  if (!pod || uid_of(*pod) != uid || !terminating(*pod)) return;
  world_.store.modify(key, [&](Json& next) {
    const WallTime now = world_.wall_now();
    set_ended(next, now);
    for (const char* type : {"Ready", "ContainersReady"})
      set_condition(next, object_of({{"type", type}, {"status", "False"}}), now);
  });
  // Do the final delete. The real kubelet has the UID as a precondition; here the comparison above has checked the UID.
  delete_gracefully(world_, key, 0);
}

void Machines::set_node_ready(const std::string& node, const char* status, const char* reason, const char* message) {
  world_.store.modify({"nodes", "", node}, [&](Json& next) {
    set_condition(next, {{"type", "Ready"}, {"status", status}, {"reason", reason}, {"message", message}},
                  world_.wall_now());
  });
}

void Machines::set_pods_ready(const std::string& node, bool ready) {
  for (const Object& pod : world_.store.list("pods", {}, By::node, node)) {
    const bool runs = text(*pod, "/status/phase") == "Running";
    const bool never = !annotation(*pod, "sim.haulout.dev/never-ready").empty();
    if (!runs || (ready && (never || terminating(*pod)))) continue;
    world_.store.modify({"pods", ns_of(*pod), name_of(*pod)}, [&](Json& next) {
      for (const char* type : {"Ready", "ContainersReady"})
        set_condition(next, object_of({{"type", type}, {"status", ready ? "True" : "False"}}), world_.wall_now());
    });
  }
}

void Machines::down(const std::string& node) {
  world_.switches.stopped_kubelets.insert(node);
  set_node_ready(node, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
  set_pods_ready(node, false);
}

void Machines::up(const std::string& node, const std::string& boot_id) {
  world_.switches.stopped_kubelets.erase(node);
  world_.store.modify({"nodes", "", node}, [&](Json& next) {
    if (!boot_id.empty()) next["status"]["nodeInfo"]["bootID"] = boot_id;
    set_condition(next,
                  {{"type", "Ready"},
                   {"status", "True"},
                   {"reason", "KubeletReady"},
                   {"message", "kubelet is posting ready status"}},
                  world_.wall_now());
  });
  kubelet_.resync(node);
  world_.agenda.after(world_.timing.pod_start, [this, node] {
    if (world_.switches.stopped_kubelets.count(node) == 0) set_pods_ready(node, true);
  });
}

void Machines::register_again(const std::string& node) {
  const Object before = world_.store.remove({"nodes", "", node});
  if (!before) return;
  Json next = {{"metadata", {{"name", node}}}, {"spec", Json::object()}};
  if (before->contains("status")) next["status"] = before->at("status");
  const Json& labels = at(*before, "/metadata/labels");
  if (labels.is_object())
    for (const auto& [key, value] : labels.items())
      if (!key.starts_with("haulout.dev/")) next["metadata"]["labels"][key] = value;
  Json& conditions = next["status"]["conditions"];
  if (conditions.is_array())
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                    [](const Json& entry) { return k8s::own_condition(entry.value("type", "")); }),
                     conditions.end());
  else
    next["status"].erase("conditions");
  world_.store.create("nodes", std::move(next));
}

std::string Machines::new_boot_id() {
  return fmt::format("b0070000-0000-4000-8000-{:012x}", ++boots_);
}

}  // namespace haulout::sim
