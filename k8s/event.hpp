// Events about Nodes: the struct, its place in the API and its encoder. Pure.
#pragma once

#include "k8s/kind.hpp"

namespace haulout::k8s {

// An Event (events.k8s.io/v1) about a Node. Reason, action, instance and note are cut to the lengths that the API
// accepts.
struct NodeEvent {
  enum class Type { normal, warning };

  std::string ns = "default";  // the convention for Nodes
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

}  // namespace haulout::k8s
