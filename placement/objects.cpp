#include "placement/objects.hpp"

#include <algorithm>

namespace haulout::placement {

namespace {

const Json null;

// Returns the items of the list at the path; none if it does not exist.
const Json::array_t& list_at(const Json& object, const char* pointer) {
  static const Json::array_t none;
  const auto* items = at(object, pointer).get_ptr<const Json::array_t*>();
  return items ? *items : none;
}

}  // namespace

const Json& at(const Json& object, const char* pointer) {
  const Json* here = &object;
  while (*pointer != '\0') {
    const char* const name = pointer + 1;
    for (pointer = name; *pointer != '\0' && *pointer != '/';) ++pointer;
    const auto* members = here->get_ptr<const Json::object_t*>();
    if (!members) return null;
    const auto found = members->find(std::string_view(name, pointer));
    if (found == members->end()) return null;
    here = &found->second;
  }
  return *here;
}

std::string text(const Json& object, const char* pointer) {
  const Json& value = at(object, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool is_text(const Json& object, const char* pointer, std::string_view value) {
  const auto* found = at(object, pointer).get_ptr<const std::string*>();
  return found == nullptr ? value.empty() : *found == value;
}

std::int64_t number(const Json& object, const char* pointer, std::int64_t otherwise) {
  const Json& value = at(object, pointer);
  return value.is_number() ? value.get<std::int64_t>() : otherwise;
}

bool flag(const Json& object, const char* pointer) {
  const Json& value = at(object, pointer);
  return value.is_boolean() && value.get<bool>();
}

std::string name_of(const Json& object) {
  return text(object, "/metadata/name");
}

std::string ns_of(const Json& object) {
  return text(object, "/metadata/namespace");
}

std::string uid_of(const Json& object) {
  return text(object, "/metadata/uid");
}

const Json& controller_of(const Json& object) {
  for (const Json& owner : list_at(object, "/metadata/ownerReferences"))
    if (flag(owner, "/controller")) return owner;
  return null;
}

bool terminating(const Json& object) {
  return at(object, "/metadata/deletionTimestamp").is_string();
}

std::optional<std::string> label(const Json& object, const std::string& key) {
  const Json& labels = at(object, "/metadata/labels");
  if (!labels.is_object() || !labels.contains(key) || !labels[key].is_string()) return std::nullopt;
  return labels[key].get<std::string>();
}

const Json& condition(const Json& object, std::string_view type) {
  for (const Json& entry : list_at(object, "/status/conditions"))
    if (is_text(entry, "/type", type)) return entry;
  return null;
}

bool node_ready(const Json& node) {
  const Json& ready = condition(node, "Ready");
  return ready.is_null() || is_text(ready, "/status", "True");
}

bool pod_finished(const Json& pod) {
  const auto* phase = at(pod, "/status/phase").get_ptr<const std::string*>();
  return phase && (*phase == "Succeeded" || *phase == "Failed");
}

bool waits_for_node(const Json& pod) {
  return is_text(pod, "/spec/nodeName", "") && !terminating(pod) && !pod_finished(pod);
}

bool has_scheduling_gates(const Json& pod) {
  return !at(pod, "/spec/schedulingGates").empty();
}

std::set<std::string> claimed_resources(const Json& pod) {
  std::set<std::string> names;
  for (const Json& mapping : at(pod, "/status/extendedResourceClaimStatus/requestMappings"))
    names.insert(text(mapping, "/resourceName"));
  return names;
}

std::string foreign_scheduler(const Json& pod) {
  const std::string name = text(pod, "/spec/schedulerName");
  return name.empty() || name == "default-scheduler" ? "" : name;
}

bool tolerates(const Json& pod, std::string_view taint_key, std::string_view effect, std::string_view value) {
  for (const Json& toleration : at(pod, "/spec/tolerations")) {
    const std::string key = text(toleration, "/key");
    const std::string of = text(toleration, "/effect");
    const bool exists = text(toleration, "/operator") == "Exists";
    const bool about = key == taint_key ? exists || text(toleration, "/value") == value : key.empty() && exists;
    if (about && (of.empty() || of == effect)) return true;
  }
  return false;
}

}  // namespace haulout::placement
