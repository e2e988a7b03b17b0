// Readers of the fields of Nodes and Pods, as JSON documents, that decide where a pod can go. They never fail: what is
// absent reads as the API's default. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace haulout::placement {

using Json = nlohmann::json;
// Shared and never changed in place.
using Object = std::shared_ptr<const Json>;

// Null reference when the path (JSON pointer) leads nowhere.
const Json& at(const Json& object, const char* pointer);
std::string text(const Json& object, const char* pointer);
std::int64_t number(const Json& object, const char* pointer, std::int64_t otherwise = 0);
bool flag(const Json& object, const char* pointer);

std::string name_of(const Json& object);
std::string ns_of(const Json& object);
std::string uid_of(const Json& object);
// The ownerReference with controller: true, or null.
const Json& controller_of(const Json& object);
bool terminating(const Json& object);
// Empty where there is no such label.
std::optional<std::string> label(const Json& object, const std::string& key);
// The condition of that type in status.conditions, or null.
const Json& condition(const Json& object, std::string_view type);

bool node_ready(const Json& node);   // also while no kubelet has reported on it
bool pod_finished(const Json& pod);  // Succeeded or Failed
bool waits_for_node(const Json& pod);
bool has_scheduling_gates(const Json& pod);  // no scheduler looks at it before somebody has taken them away
// The extended resources among its requests that a ResourceClaim serves, as the scheduler has written down: no Node
// needs to list them.
std::set<std::string> claimed_resources(const Json& pod);
// The name of the scheduler that places it, whose rules are not known; empty: it is kube-scheduler.
std::string foreign_scheduler(const Json& pod);
bool tolerates(const Json& pod, std::string_view taint_key, std::string_view effect, std::string_view value = {});

}  // namespace haulout::placement
