// The Kubernetes objects that Haulout reads, reduced to the fields that it uses, and the types of lists. They are plain
// values and take a fraction of the memory of their JSON. Names and meanings are those of the API. An absent field and
// zero are the same unless the field is optional. Decoding fails with Errc::decode (codec.hpp). No I/O.
#pragma once

#include "k8s/eviction_request.hpp"
#include "k8s/kind.hpp"
#include "k8s/label_selector.hpp"
#include "k8s/lease.hpp"
#include "k8s/node.hpp"
#include "k8s/pod.hpp"
#include "k8s/pod_disruption_budget.hpp"
#include "k8s/volume.hpp"
#include "k8s/workload.hpp"

namespace haulout::k8s {

struct Namespace {
  std::string name;
  std::string uid;
  // Messages of the conditions that are True. Each says what prevents the deletion of the namespace.
  std::vector<std::string> conditions;
  std::optional<WallTime> deletion_timestamp{};
  std::map<std::string, std::string> annotations{};  // only those that Haulout reads
};

template <>
struct Kind<Namespace> {
  static constexpr std::string_view name = "Namespace";
  static constexpr Api api{"v1", "namespaces", Scope::cluster, Names::of_objects, "namespace", "namespaces"};
  static constexpr std::array<std::string_view, 1> dropped = {"managedFields"};

  static void read(const codec::Object& json, Namespace& ns) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, ns);
    ns.deletion_timestamp = metadata.time("deletionTimestamp");
    for (auto& [key, value] : metadata.strings("annotations"))
      if (kept_annotation(key)) ns.annotations.emplace(key, value);
    json.object("status").each("conditions", [&](const codec::Object& condition) {
      if (condition.string("status") == "True") ns.conditions.push_back(condition.string("message"));
    });
  }
};

struct ConfigMap {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> data;
  bool operator==(const ConfigMap&) const = default;
};

template <>
struct Kind<ConfigMap> {
  static constexpr std::string_view name = "ConfigMap";
  static constexpr Api api{"v1", "configmaps", Scope::one_namespace, Names::ours, "ConfigMap", "ConfigMaps"};
  static constexpr ListBudget budget{10'000, megabytes(32), megabytes(16), kilobytes(1)};
  static constexpr std::array<std::string_view, 2> dropped = {"managedFields", "binaryData"};

  static void read(const codec::Object& json, ConfigMap& config_map) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, config_map);
    config_map.data = json.strings("data");
  }
  static std::string encode(const ConfigMap& config_map) {
    return codec::Writer()
        .text("apiVersion", api.group_version)
        .text("kind", name)
        .object("metadata", codec::Writer().text("name", config_map.name).text("namespace", config_map.ns))
        .texts_if_any("data", config_map.data)
        .str();
  }
  static std::size_t text_in(const ConfigMap& config_map) { return text_of(config_map.data); }
};

// A Service, and the pods to which it sends requests.
struct Service {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<LabelSelector> selector;  // absent if the endpoints of the Service are managed by other means

  std::string key() const { return ns + "/" + name; }
  bool selects(const Pod& pod) const { return pod.ns == ns && selector && selector->matches(pod.labels); }
};

template <>
struct Kind<Service> {
  static constexpr std::string_view name = "Service";
  static constexpr Api api{"v1", "services", Scope::namespaced, Names::of_objects, "Service", "Services"};
  static constexpr std::array<std::string_view, 1> dropped = {"managedFields"};

  // An empty selector is read as no selector.
  static void read(const codec::Object& json, Service& service) {
    codec::read_identity(json.object("metadata"), service);
    std::vector<LabelSelector::Requirement> requirements;
    for (auto& [key, value] : json.object("spec").strings("selector"))
      requirements.push_back({key, LabelSelector::Operator::in, {value}});
    if (!requirements.empty()) service.selector = LabelSelector(std::move(requirements));
  }
};

// An Event (events.k8s.io/v1) about a Node. Reason, action, instance and note are cut to the lengths that the API
// accepts.
struct NodeEvent {
  enum class Type { normal, warning };

  std::string ns = "default";  // by convention the namespace of Events about Nodes
  std::string name;            // unique in its namespace; usable again when the Event has expired, one hour later
  std::string node;
  std::string node_uid;  // without it, `kubectl describe node` does not find the Event
  Type type = Type::normal;
  std::string reason;  // CamelCase, as is `action`
  std::string action;
  std::string note;
  std::string reporting_controller;  // for example "haulout.dev/agent"
  std::string reporting_instance;
  WallTime event_time;
};

template <>
struct Kind<NodeEvent> {
  static constexpr std::string_view name = "Event";
  static constexpr Api api{"events.k8s.io/v1", "events", Scope::one_namespace, Names::ours, "Event", "Events"};

  static std::string encode(const NodeEvent& event) {
    // Limits of the fields, in bytes (validation of the API server).
    constexpr std::size_t longest_note = 1024;
    constexpr std::size_t longest_word = 128;
    using codec::cut;
    return codec::Writer()
        .text("apiVersion", api.group_version)
        .text("kind", name)
        .object("metadata", codec::Writer().text("name", event.name).text("namespace", event.ns))
        .text("eventTime", format_micro_time(event.event_time))
        .text("reportingController", event.reporting_controller)
        .text("reportingInstance", cut(event.reporting_instance, longest_word))
        .text("action", cut(event.action, longest_word))
        .text("reason", cut(event.reason, longest_word))
        .object("regarding", codec::Writer()
                                 .text("apiVersion", "v1")
                                 .text("kind", "Node")
                                 .text("name", event.node)
                                 .text("uid", event.node_uid))
        .text("type", event.type == NodeEvent::Type::warning ? "Warning" : "Normal")
        .text_if_any("note", cut(event.note, longest_note))
        .str();
  }
  // Returns the merge patch that records how often and when last an Event has happened.
  static std::string encode_series(std::int32_t count, WallTime last_observed) {
    return codec::Writer()
        .object("series", codec::Writer()
                              .raw("count", std::to_string(count))
                              .text("lastObservedTime", format_micro_time(last_observed)))
        .str();
  }
};

// The identity under which the server sees this client (Client::review_self()). A field is empty if the server does not
// report it; node and pod are known if the token is bound to a pod.
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
  const auto found = entries.empty() ? entries.end() : entries.find(std::string(key));
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
