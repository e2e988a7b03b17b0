// Objects of the simulated cluster: JSON documents, the table of the resources served, and readers of the fields that
// its parts decide on. Readers never fail: what is absent reads as the API's default.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "retry/clock.hpp"

namespace haulout::sim {

using Json = nlohmann::json;
// Stored objects are shared and never changed in place.
using Object = std::shared_ptr<const Json>;

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

// Null reference when the path (JSON pointer) leads nowhere.
const Json& at(const Json& object, const char* pointer);
std::string text(const Json& object, const char* pointer);
std::int64_t number(const Json& object, const char* pointer, std::int64_t otherwise = 0);
bool flag(const Json& object, const char* pointer);

std::string name_of(const Json& object);
std::string ns_of(const Json& object);
std::string uid_of(const Json& object);
std::string annotation(const Json& object, const char* key);
// The ownerReference with controller: true, or null.
const Json& controller_of(const Json& object);
bool terminating(const Json& object);
bool has_finalizers(const Json& object);

// Empty where there is no such label.
std::optional<std::string> label(const Json& object, const std::string& key);

bool node_ready(const Json& node);   // also while no kubelet has reported on it
bool pod_finished(const Json& pod);  // Succeeded or Failed
bool waits_for_node(const Json& pod);
bool is_mirror(const Json& pod);
// A DaemonSet's pod, a static one, a finished one: what a drain may leave where it is.
bool may_stay(const Json& pod);
bool pod_ready(const Json& pod);
bool tolerates(const Json& pod, std::string_view taint_key, std::string_view effect, std::string_view value = {});
// The condition of that type in status.conditions, or null.
const Json& condition(const Json& object, std::string_view type);
// Adds or replaces it; lastTransitionTime moves only when the status does.
void set_condition(Json& object, Json value, WallTime now);

// "1500ms", "2s", "3m": annotations of the simulation.
std::optional<Duration> parse_duration(std::string_view text);
// What the annotation says in that form.
Duration annotated(const Json& object, const char* key, Duration otherwise);

}  // namespace haulout::sim
