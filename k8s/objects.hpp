// The Kubernetes objects that a drain reads, reduced to the fields it reads: plain values, a fraction of the memory of
// the JSON they come from. Names and meanings are the API's own. Absent and zero are the same unless a field is
// optional.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/label_selector.hpp"
#include "retry/clock.hpp"

namespace haulout::k8s {

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

enum class PodPhase { pending, running, succeeded, failed, unknown };

struct Pod {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  // Only those that Haulout reads (see kept_annotation).
  std::map<std::string, std::string> annotations;
  std::optional<OwnerReference> controller;  // the ownerReference with controller: true
  std::vector<std::string> finalizers;
  std::optional<WallTime> deletion_timestamp;  // when the grace period ends, by the server's clock
  std::optional<std::int64_t> deletion_grace_seconds;
  std::string node_name;
  std::int64_t grace_seconds = 30;  // spec.terminationGracePeriodSeconds; the API's default when absent
  std::int32_t priority = 0;        // absent counts as 0, as the scheduler does
  std::string priority_class;
  bool has_empty_dir = false;
  bool tolerates_unschedulable = false;  // tolerates node.kubernetes.io/unschedulable:NoSchedule
  PodPhase phase = PodPhase::pending;
  bool ready = false;                  // condition Ready is True
  bool containers_terminated = false;  // every container status says terminated
  std::optional<WallTime> start_time;

  std::string key() const { return ns + "/" + name; }
  bool finished() const { return phase == PodPhase::succeeded || phase == PodPhase::failed; }
  bool terminating() const { return deletion_timestamp.has_value(); }
  bool operator==(const Pod&) const = default;
};

// Annotations of a Pod that the decoder keeps.
bool kept_annotation(std::string_view key);

struct Taint {
  std::string key;
  std::string effect;
  std::optional<WallTime> time_added;
  bool operator==(const Taint&) const = default;
};

struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;  // all of them: ours are found by their prefix
  bool unschedulable = false;
  std::vector<Taint> taints;
  bool ready = false;
  // metadata.managedFields: who last set f:spec.f:unschedulable, for messages only.
  std::string unschedulable_manager;
  bool operator==(const Node&) const = default;
};

struct PodDisruptionBudget {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::int64_t observed_generation = 0;
  std::optional<LabelSelector> selector;  // policy/v1: absent matches nothing, empty matches everything
  std::string min_available;              // as written: "1", "50%" or empty
  std::string max_unavailable;
  bool always_allow_unhealthy = false;  // unhealthyPodEvictionPolicy: AlwaysAllow
  std::int32_t disruptions_allowed = 0;
  std::int32_t current_healthy = 0;
  std::int32_t desired_healthy = 0;
  std::int32_t expected_pods = 0;
  std::vector<std::string> disrupted_pods;  // names
  std::string condition_reason;             // of condition DisruptionAllowed
  std::string condition_message;

  std::string key() const { return ns + "/" + name; }
  bool selects(const Pod& pod) const { return pod.ns == ns && selector && selector->matches(pod.labels); }
  bool operator==(const PodDisruptionBudget&) const = default;
};

struct DaemonSet {
  std::string ns;
  std::string name;
  std::string uid;
};

// What a list says of itself.
struct ListMeta {
  std::string resource_version;
  std::string continue_token;
};

template <class T>
struct List {
  ListMeta meta;
  std::vector<T> items;
};

// One line of a watch, its object not yet decoded into a type.
enum class WatchEventType { added, modified, deleted, bookmark, error };

}  // namespace haulout::k8s
