// Objects of the simulated cluster: JSON documents, the table of the resources served, and readers of the fields that
// its parts decide on. Readers never fail: what is absent reads as the API's default.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::sim {

using placement::Json;
using placement::Object;

struct ResourceInfo {
  std::string_view resource;  // plural, as in the path
  std::string_view kind;
  std::string_view group;  // empty: core
  std::string_view version;
  bool namespaced;
  std::string api_version() const;
  // "nodes", "poddisruptionbudgets.policy": how messages name it.
  std::string qualified() const;
};
// Whether it has a scale subresource.
bool scalable(const ResourceInfo& info);
const ResourceInfo* find_resource(std::string_view group, std::string_view resource);
const ResourceInfo* find_resource(std::string_view resource);
const ResourceInfo* find_kind(std::string_view kind);
const std::vector<ResourceInfo>& all_resources();

struct Key {
  std::string resource;
  std::string ns;  // empty for cluster-scoped objects
  std::string name;
  auto operator<=>(const Key&) const = default;
};

// What decides where a pod can go is read where that is decided.
using placement::at;
using placement::condition;
using placement::controller_of;
using placement::flag;
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

std::string annotation(const Json& object, const char* key);
bool has_finalizers(const Json& object);

bool is_mirror(const Json& pod);
// A DaemonSet's pod, a static one, one that had finished before anybody deleted it: what a drain may leave where it is.
bool may_stay(const Json& pod);
bool pod_ready(const Json& pod);
// Names of the PersistentVolumeClaims that it mounts.
std::vector<std::string> claims_of(const Json& pod);
// Adds or replaces it; lastTransitionTime moves only when the status does.
void set_condition(Json& object, Json value, WallTime now);

// The duration in an annotation of the simulation: "1500ms", "2s", "1h30m". `otherwise` where there is none that can be
// read.
Duration annotated(const Json& object, const char* key, Duration otherwise);

}  // namespace haulout::sim
