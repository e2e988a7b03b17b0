// Reads the fields of Nodes and Pods (as JSON) that decide on which nodes a pod fits. The functions never fail: an
// absent field has the API's default. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "placement/sorted_map.hpp"

namespace haulout::placement {

// References to the members of an object are valid only until it gets or loses a member (sorted_map.hpp).
using Json = nlohmann::basic_json<SortedMap>;
// An object of the API. It is shared and never changes.
using Object = std::shared_ptr<const Json>;

// Returns a reference to null if the path (JSON pointer) does not exist.
const Json& at(const Json& object, const char* pointer);
std::string text(const Json& object, const char* pointer);
// Returns true if the value at the path is this text. An empty text also matches a value that is absent or no text.
bool is_text(const Json& object, const char* pointer, std::string_view value);
std::int64_t number(const Json& object, const char* pointer, std::int64_t otherwise = 0);
bool flag(const Json& object, const char* pointer);

std::string name_of(const Json& object);
std::string ns_of(const Json& object);
std::string uid_of(const Json& object);
// Returns the ownerReference with controller: true, or null.
const Json& controller_of(const Json& object);
bool terminating(const Json& object);
// Returns nullopt if there is no such label.
std::optional<std::string> label(const Json& object, const std::string& key);
// Returns the condition of that type from status.conditions, or null.
const Json& condition(const Json& object, std::string_view type);

bool node_ready(const Json& node);   // also true if the kubelet has not reported a status yet
bool pod_finished(const Json& pod);  // phase Succeeded or Failed
// Returns true if the scheduler has to find a node for the pod.
bool waits_for_node(const Json& pod);
bool has_scheduling_gates(const Json& pod);  // schedulers ignore such a pod until all its gates are removed
// Returns the requested extended resources that a ResourceClaim serves, as the scheduler has recorded in the pod's
// status. A Node need not list them.
std::set<std::string> claimed_resources(const Json& pod);
// Returns the name of the pod's scheduler if it is not kube-scheduler, because its rules are not known; else empty.
std::string foreign_scheduler(const Json& pod);
bool tolerates(const Json& pod, std::string_view taint_key, std::string_view effect, std::string_view value = {});

}  // namespace haulout::placement
