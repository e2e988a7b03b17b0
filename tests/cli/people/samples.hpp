// Sample Nodes with the labels and annotations of their agents, at a fixed time. No I/O.
#pragma once

#include <functional>

#include "agent/node/record.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli::samples {

inline const WallTime now = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 21)) + std::chrono::hours(12);

inline k8s::Node bare(std::string name) {
  k8s::Node node;
  node.name = std::move(name);
  node.uid = "uid-" + node.name;
  node.ready = true;
  return node;
}

// Returns a node that has been in this state for twelve minutes.
inline k8s::Node node_in(std::string name, agent::State state, std::string reason = "", std::string message = "") {
  k8s::Node node = bare(std::move(name));
  agent::Record record;
  record.state = state;
  record.since = now - std::chrono::minutes(12);
  node.labels = {{"haulout.dev/state", std::string(to_string(state))},
                 {"haulout.dev/reboot-required", state == agent::State::idle ? "false" : "true"}};
  if (!reason.empty()) node.labels["haulout.dev/reason"] = reason;
  node.annotations = {{"haulout.dev/record", encode_record(record)}};
  if (!message.empty()) node.annotations["haulout.dev/message"] = message;
  return node;
}

inline k8s::Lease turn_of(const k8s::Node& node, const std::string& pool = "default") {
  k8s::Lease lease;
  lease.name = "haulout-" + pool + "-0";
  lease.labels = {{"haulout.dev/pool", pool}};
  lease.holder = node.name + "/" + node.uid;
  return lease;
}

inline void remember(k8s::Node& node, const std::function<void(agent::Record&)>& change) {
  agent::Record record = agent::decode_record(node.annotations["haulout.dev/record"]);
  change(record);
  node.annotations["haulout.dev/record"] = encode_record(record);
}

}  // namespace haulout::cli::samples
