#include "rehearse/workload_watch.hpp"

#include <algorithm>

#include "rehearse/top_controller.hpp"
#include "sim/budgets.hpp"

namespace haulout::rehearse {
namespace {

// A pod that has no node for less than this does not wait for room: its scheduling takes that long.
constexpr Duration short_wait = std::chrono::seconds(1);

bool is_ready(const sim::Json& pod) {
  return sim::pod_ready(pod) && !sim::terminating(pod) && !sim::pod_finished(pod);
}

bool is_without_room(const sim::Json& pod) {
  return sim::waits_for_node(pod) && sim::text(sim::condition(pod, "PodScheduled"), "/reason") == "Unschedulable";
}

bool is_simulated(const TopController& controller) {
  return controller.object &&
         (controller.kind == "Deployment" || controller.kind == "ReplicaSet" || controller.kind == "StatefulSet");
}

// Returns true if the server could compute the status of the budget.
bool is_known(const sim::Json& budget) {
  return sim::text(sim::condition(budget, "DisruptionAllowed"), "/reason") != "SyncFailed";
}

}  // namespace

void WorkloadWatch::begin() {
  const WallTime now = clock_.wall_now();
  for (const sim::Object& pod : cluster_.store().list("pods")) {
    if (sim::pod_finished(*pod)) continue;
    pod_changed(*pod, false);
    Pod& known = pods_[sim::uid_of(*pod)];
    known.was_without_room = known.waits_since.has_value();
    if (!known.owner) continue;
    OwnerCourse& course = known.owner->course;
    if (!sim::terminating(*pod)) ++course.pods;
    if (!course.has_budget) course.has_budget = !sim::budgets_of_pod(cluster_.store(), *pod).empty();
  }
  for (auto& [name, owner] : owners_) {
    owner.course.ready = owner.course.least_ready = owner.ready;
    owner.course.least_at = now;
    if (!owner.course.is_replaced) owner.course.replicas = owner.course.pods;
  }
  for (const sim::Object& budget : cluster_.store().list("poddisruptionbudgets")) {
    if (!is_known(*budget)) continue;
    const std::string name = sim::ns_of(*budget) + "/" + sim::name_of(*budget);
    const std::int64_t healthy = sim::number(*budget, "/status/currentHealthy");
    budgets_[name] = {name, sim::number(*budget, "/status/desiredHealthy"), healthy, healthy, now};
  }
  cluster_.on_change([this](const sim::Change& change) {
    if (change.key.resource == "pods") pod_changed(*change.object, change.type == sim::ChangeType::deleted);
    if (change.key.resource == "poddisruptionbudgets" && change.type != sim::ChangeType::deleted)
      budget_changed(change.key, *change.object);
  });
}

void WorkloadWatch::pod_changed(const sim::Json& pod, bool deleted) {
  const WallTime now = clock_.wall_now();
  const auto [entry, is_new] = pods_.try_emplace(sim::uid_of(pod));
  Pod& known = entry->second;
  if (is_new) known.owner = owner_of(pod);
  if (!known.owner) return;
  if (const bool ready = !deleted && is_ready(pod); ready != known.ready) {
    known.ready = ready;
    Owner& owner = *known.owner;
    owner.ready = ready ? owner.ready + 1 : owner.ready - 1;
    if (owner.ready < owner.course.least_ready) {
      owner.course.least_ready = owner.ready;
      owner.course.least_at = now;
    }
  }
  const bool waits = !deleted && is_without_room(pod);
  if (waits == known.waits_since.has_value()) return;
  if (!waits) {
    count_wait(known.owner->course, known, now);
    known.was_without_room = false;
  }
  known.waits_since = waits ? std::optional(now) : std::nullopt;
}

void WorkloadWatch::count_wait(OwnerCourse& course, const Pod& pod, WallTime until) {
  if (!pod.waits_since || pod.was_without_room) return;
  const Duration waited = until - *pod.waits_since;
  if (waited < short_wait) return;
  ++course.without_room;
  course.longest_without_room = std::max(course.longest_without_room, waited);
}

void WorkloadWatch::budget_changed(const sim::Key& key, const sim::Json& budget) {
  const auto known = budgets_.find(key.ns + "/" + key.name);
  if (known == budgets_.end() || !is_known(budget)) return;
  const std::int64_t healthy = sim::number(budget, "/status/currentHealthy");
  if (healthy >= known->second.least_healthy) return;
  known->second.least_healthy = healthy;
  known->second.least_at = clock_.wall_now();
}

WorkloadWatch::Owner* WorkloadWatch::owner_of(const sim::Json& pod) {
  const sim::Json& reference = sim::controller_of(pod);
  const bool alone = reference.is_null();
  if (sim::is_mirror(pod) || sim::text(reference, "/kind") == "DaemonSet") return nullptr;
  const auto [known, is_new] = by_controller_.try_emplace(alone ? sim::uid_of(pod) : sim::text(reference, "/uid"));
  if (!is_new) return known->second;
  const std::string ns = sim::ns_of(pod);
  const TopController top = alone ? TopController{ns, "Pod", sim::name_of(pod), {}, {}, nullptr}
                                  : top_controller(cluster_.store(), ns, reference);
  Owner& owner = owners_[top.ns + "/" + top.kind + "/" + top.name];
  owner.course.owner = top.ns + "/" + top.kind + "/" + top.name;
  owner.course.is_replaced = is_simulated(top);
  if (owner.course.is_replaced)
    owner.course.replicas = static_cast<std::size_t>(sim::number(*top.object, "/spec/replicas", 1));
  return known->second = &owner;
}

void WorkloadWatch::evicted(const std::string& uid) {
  const auto known = pods_.find(uid);
  if (known == pods_.end() || !known->second.owner || known->second.was_evicted) return;
  known->second.was_evicted = true;
  ++known->second.owner->course.evictions;
}

std::vector<OwnerCourse> WorkloadWatch::owners() const {
  std::map<std::string, OwnerCourse> courses;
  for (const auto& [name, owner] : owners_) courses[name] = owner.course;
  for (const auto& [uid, pod] : pods_)
    if (pod.owner) count_wait(courses[pod.owner->course.owner], pod, clock_.wall_now());
  std::vector<OwnerCourse> result;
  result.reserve(courses.size());
  for (auto& [name, course] : courses) result.push_back(std::move(course));
  return result;
}

std::vector<BudgetCourse> WorkloadWatch::budgets() const {
  std::vector<BudgetCourse> result;
  result.reserve(budgets_.size());
  for (const auto& [name, course] : budgets_) result.push_back(course);
  return result;
}

}  // namespace haulout::rehearse
