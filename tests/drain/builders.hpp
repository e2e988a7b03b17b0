// Builders of pods and budgets for tests, with sensible defaults. No I/O.
#pragma once

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::drain::testing {

inline k8s::Pod a_pod(std::string name, std::string ns = "shop") {
  k8s::Pod pod;
  pod.uid = ns + "-" + name + "-uid";
  pod.ns = std::move(ns);
  pod.name = std::move(name);
  pod.resource_version = "1";
  pod.node_name = "n1";
  pod.phase = k8s::PodPhase::running;
  pod.ready = true;
  pod.controller = k8s::OwnerReference{"apps/v1", "ReplicaSet", "web-6d4b9", "rs-uid", true};
  return pod;
}

inline k8s::Pod owned_by(k8s::Pod pod, std::string api_version, std::string kind, std::string name, std::string uid) {
  pod.controller = k8s::OwnerReference{std::move(api_version), std::move(kind), std::move(name), std::move(uid), true};
  return pod;
}

inline k8s::Pod terminating(k8s::Pod pod, WallTime asked = WallTime{std::chrono::hours(1)}, std::int64_t grace = 30) {
  pod.deletion_timestamp = asked + std::chrono::seconds(grace);
  pod.deletion_grace_seconds = grace;
  pod.resource_version += "0";
  return pod;
}

inline k8s::PodDisruptionBudget a_budget(std::string name, std::int32_t allowed, std::string ns = "shop") {
  k8s::PodDisruptionBudget budget;
  budget.uid = ns + "-" + name + "-uid";
  budget.ns = std::move(ns);
  budget.name = std::move(name);
  budget.generation = budget.observed_generation = 1;
  budget.selector = k8s::LabelSelector();
  budget.max_unavailable = "1";
  budget.disruptions_allowed = allowed;
  budget.current_healthy = 3;
  budget.desired_healthy = 3 - allowed;
  budget.expected_pods = 3;
  return budget;
}

inline Error status_error(int code, std::string reason, std::string kind = {}, std::string cause = {},
                          std::string message = "refused") {
  Error error(Errc::status, message);
  error.peer = PeerStatus{code, std::move(reason), std::move(kind), {}, std::move(message), {}, {}, true};
  if (!cause.empty()) error.peer->causes.push_back({std::move(cause), {}, {}});
  return error;
}

}  // namespace haulout::drain::testing
