// Objects of the simulated cluster: JSON documents, the table of the served resources, and functions that read the
// fields that the simulation uses. These functions never fail: they return the API's default for an absent field. No
// I/O.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::sim {

using placement::Json;
using placement::Object;

struct ResourceInfo {
  std::string_view resource;  // plural, as in the path of a request: "pods"
  std::string_view kind;
  std::string_view group;  // API group; empty for the core group
  std::string_view version;
  bool namespaced;
  std::string api_version() const;
  // Returns the name of the resource in the server's messages: "nodes", "poddisruptionbudgets.policy".
  std::string qualified() const;
};
// The API group that the simulated server serves only if Switches::eviction_requests is set.
inline constexpr std::string_view eviction_request_group = "lifecycle.k8s.io";

// Returns true if the resource has a scale subresource.
bool scalable(const ResourceInfo& info);
// These functions return the row of the table for a resource (plural) or a kind; nullptr if there is none.
const ResourceInfo* find_resource(std::string_view group, std::string_view resource);
const ResourceInfo* find_resource(std::string_view resource);
const ResourceInfo* find_kind(std::string_view kind);
const std::vector<ResourceInfo>& all_resources();

struct Key {
  std::string resource;
  std::string ns;  // namespace; empty for cluster-scoped objects
  std::string name;
  auto operator<=>(const Key&) const = default;
};
struct HashOfKey {
  std::size_t operator()(const Key& key) const;
};

// Functions from placement/objects.hpp, which placement and the simulation share.
using placement::at;
using placement::condition;
using placement::controller_of;
using placement::flag;
using placement::is_text;
using placement::label;
using placement::name_of;
using placement::node_ready;
using placement::ns_of;
using placement::number;
using placement::pod_finished;
using placement::terminating;
using placement::text;
using placement::tolerates;
using placement::uid_of;
using placement::waits_for_node;

// Makes an object with these members. Takes a fraction of the time of nested braces, of which Json makes lists first.
Json object_of(std::initializer_list<std::pair<std::string_view, Json>> members);
// Makes an object that takes itself apart at its end. Json would move each of its members to a list first, and a
// simulation spends a twentieth of its time on the end of old states of objects.
Object object_from(Json json);
std::string annotation(const Json& object, const char* key);
bool has_finalizers(const Json& object);

bool is_mirror(const Json& pod);
// Returns true for a pod that a drain may leave on the node: a pod of a DaemonSet, a mirror pod, or a finished pod that
// is not terminating.
bool may_stay(const Json& pod);
bool pod_ready(const Json& pod);
// Returns the names of the PersistentVolumeClaims that the pod mounts.
std::vector<std::string> claims_of(const Json& pod);
// Adds the condition `value` to status.conditions, or replaces the condition of the same type. lastTransitionTime
// changes only if the status changes.
void set_condition(Json& object, Json value, WallTime now);

// Returns the duration in the annotation `key`, which controls the simulation: "1500ms", "2s", "1h30m". Returns
// `otherwise` if the annotation is absent, invalid or negative.
Duration annotated(const Json& object, const char* key, Duration otherwise);

}  // namespace haulout::sim
