#include "sim/job_tracking.hpp"

namespace haulout::sim {
namespace {

constexpr std::string_view finalizer = "batch.kubernetes.io/job-tracking";

bool is_tracked(const Json& pod) {
  const Json& owner = controller_of(pod);
  if (text(owner, "/kind") != "Job" || !text(owner, "/apiVersion").starts_with("batch/")) return false;
  const Json& finalizers = at(pod, "/metadata/finalizers");
  return std::find(finalizers.begin(), finalizers.end(), finalizer) != finalizers.end();
}

// Returns true if the pod has finished, or is terminating without any grace period left.
bool has_ended(const Json& pod) {
  return pod_finished(pod) || (terminating(pod) && number(pod, "/metadata/deletionGracePeriodSeconds") == 0);
}

}  // namespace

JobTracking::JobTracking(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "pods" || change.type == ChangeType::deleted) return;
    if (is_tracked(*change.object) && has_ended(*change.object))
      world_.agenda.after(world_.timing.controller_lag,
                          [this, key = change.key, uid = uid_of(*change.object)] { let_go(key, uid); });
  });
}

void JobTracking::let_go(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  if (!world_.switches.workload_controllers || !pod || uid_of(*pod) != uid) return;
  world_.store.modify(key, [](Json& next) {
    Json& finalizers = next["metadata"]["finalizers"];
    finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), finalizer), finalizers.end());
  });
}

}  // namespace haulout::sim
