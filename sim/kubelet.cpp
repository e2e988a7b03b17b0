#include "sim/kubelet.hpp"

#include "k8s/codec.hpp"
#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {
namespace {

void set_containers(Json& pod, const char* state, Json details, bool ready) {
  Json statuses = Json::array();
  for (const Json& container : at(pod, "/spec/containers"))
    statuses.push_back({{"name", container.value("name", "app")},
                        {"image", container.value("image", "")},
                        {"ready", ready},
                        {"restartCount", 0},
                        {"state", {{state, details}}}});
  pod["status"]["containerStatuses"] = std::move(statuses);
}

}  // namespace

Kubelet::Kubelet(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "pods") return;
    if (change.type == ChangeType::deleted) {
      stopping_.erase(uid_of(*change.object));
      starting_.erase(uid_of(*change.object));
    } else {
      look(change.key, *change.object);
    }
  });
}

bool Kubelet::stopped_kubelet(const Json& pod) const {
  return world_.switches.stopped_kubelets.count(text(pod, "/spec/nodeName")) > 0;
}

void Kubelet::resync(const std::string& node) {
  for (const Object& pod : world_.store.list("pods"))
    if (text(*pod, "/spec/nodeName") == node) look({"pods", ns_of(*pod), name_of(*pod)}, *pod);
}

void Kubelet::look(const Key& key, const Json& pod) {
  if (text(pod, "/spec/nodeName").empty() || stopped_kubelet(pod)) return;
  if (terminating(pod))
    plan_stop(key, pod);
  else if (text(pod, "/status/phase") == "Pending")
    plan_start(key, pod);
}

void Kubelet::plan_start(const Key& key, const Json& pod) {
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
      set_condition(next, {{"type", type}, {"status", holds ? "True" : "False"}}, now);
    }
    set_containers(next, "running", {{"startedAt", k8s::format_time(now)}}, ready);
  });
}

void Kubelet::plan_stop(const Key& key, const Json& pod) {
  if (is_mirror(pod) || !annotation(pod, "sim.haulout.dev/never-terminates").empty()) return;
  const std::string uid = uid_of(pod);
  const auto [entry, first] = stopping_.try_emplace(uid);
  Stopping& stopping = entry->second;
  if (stopping.finished) return;
  const TimePoint now = world_.now();
  const Duration grace = std::chrono::seconds(number(pod, "/metadata/deletionGracePeriodSeconds"));
  const auto share = std::min(std::chrono::duration_cast<Duration>(grace * world_.timing.termination),
                              world_.timing.termination_limit);
  const Duration wanted = std::min(annotated(pod, "sim.haulout.dev/terminates-after", share), grace);
  if (first) stopping.asked = now;
  // A shorter grace period counts from the moment it was asked for; it can only bring the end forward.
  const TimePoint done = first ? now + wanted : std::min(stopping.done, now + grace);
  if (!first && done == stopping.done && stopping.plan > 0) return;
  stopping.done = done;
  const std::uint64_t plan = ++stopping.plan;
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
  world_.store.modify(key, [&](Json& next) {
    const WallTime now = world_.wall_now();
    set_containers(next, "terminated", {{"exitCode", 0}, {"finishedAt", k8s::format_time(now)}}, false);
    for (const char* type : {"Ready", "ContainersReady"})
      set_condition(next, {{"type", type}, {"status", "False"}}, now);
  });
  // The final delete, with the UID as its precondition: checked above.
  delete_gracefully(world_, key, 0);
}

}  // namespace haulout::sim
