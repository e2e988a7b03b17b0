// The Kubernetes objects that Haulout reads, reduced to the fields that it uses, and the types of lists. They are plain
// values and take a fraction of the memory of their JSON. Names and meanings are those of the API. An absent field and
// zero are the same unless the field is optional. No I/O.
#pragma once

#include "k8s/config_map.hpp"
#include "k8s/event.hpp"
#include "k8s/lease.hpp"
#include "k8s/namespace.hpp"
#include "k8s/node.hpp"
#include "k8s/pod.hpp"
#include "k8s/pod_disruption_budget.hpp"
#include "k8s/service.hpp"
#include "k8s/volume.hpp"
#include "k8s/workload.hpp"

namespace haulout::k8s {

// The identity under which the server sees this client. Node and pod are known if the token is bound to a pod.
struct Self {
  std::string username;
  std::vector<std::string> groups;
  std::string node_name;
  std::string node_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string credential_id{};  // the credential as in the audit log: "JTI=…", "X509SHA256=…"
  bool operator==(const Self&) const = default;
};

// Metadata of a list.
struct ListMeta {
  std::string resource_version;
  std::string continue_token;
};

template <class T>
struct List {
  ListMeta meta;
  std::vector<T> items;
};

// Returns the value of the key in labels, annotations or the data of a ConfigMap, or nullopt if there is no such key.
inline std::optional<std::string> value_at(const std::map<std::string, std::string>& entries, std::string_view key) {
  const auto found = entries.find(std::string(key));
  return found == entries.end() ? std::nullopt : std::optional(found->second);
}

// Returns true if the resourceVersion `a` is older than `b`. The API promises that resourceVersions of one kind are
// comparable numbers. Expects decimal numbers without leading zeros; does not check that.
constexpr bool is_older(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Converts a grace period of the API, which may be any whole number of seconds. A negative number becomes 0. More than
// a century becomes a century, so that the result can be added to a point in time.
constexpr std::chrono::seconds grace_period(std::int64_t seconds) {
  constexpr std::int64_t century = std::int64_t{100} * 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp(seconds, std::int64_t{0}, century));
}

}  // namespace haulout::k8s
