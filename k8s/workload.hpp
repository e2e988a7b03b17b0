// The controllers of pods: DaemonSets and what can be scaled. Structs, places in the API and decoders. Pure.
#pragma once

#include "k8s/kind.hpp"

namespace haulout::k8s {

struct DaemonSet {
  std::string ns;
  std::string name;
  std::string uid;
};

template <>
struct Kind<DaemonSet> {
  static constexpr std::string_view name = "DaemonSet";
  static constexpr Api api{"apps/v1", "daemonsets", Scope::namespaced, Names::of_objects, "workload", "DaemonSets"};
  static constexpr std::array<std::string_view, 2> dropped = {"managedFields", "template"};

  static void read(const codec::Object& json, DaemonSet& daemon_set) {
    codec::read_identity(json.object("metadata"), daemon_set);
  }
};

// How a Deployment replaces pods; only what surge needs (drain/surge_book.hpp).
struct Rollout {
  std::string strategy = "RollingUpdate";  // spec.strategy.type
  std::string max_surge = "25%";           // as written: "1" or "25%"; the API's default if absent
  std::string replacement_policy;          // spec.podReplacementPolicy; empty if absent
  bool operator==(const Rollout&) const = default;
};

// A controller of pods of any kind that can be scaled, or the Scale of such a controller.
struct Workload {
  std::string ns;
  std::string name;
  std::string uid;
  std::map<std::string, std::string> annotations;  // only those that Haulout reads; a Scale has none
  std::optional<OwnerReference> controller;        // for a ReplicaSet: its Deployment
  std::int32_t replicas = 1;                       // spec.replicas; the API's default if absent
  std::int32_t ready_replicas = 0;                 // status.readyReplicas; a Scale does not have it
  std::optional<Rollout> rollout{};                // of a Deployment
  bool terminating = false;                        // has a deletionTimestamp
};

// Workload has no Kind, because it is of several kinds. Decodes a Deployment, a ReplicaSet, a StatefulSet or a Scale;
// `kind` selects which.
Result<Workload> decode_workload(std::string_view json, std::string_view kind);
// Decodes an APIResourceList. Returns the resources that have a scale subresource: kind → plural name.
Result<std::map<std::string, std::string>> decode_scalable(std::string_view json);

}  // namespace haulout::k8s
