// One node as people want to see it: what its agent has written on it, and what else concerns it. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/pause.hpp"
#include "agent/node/record.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

// What concerns more than one node. A problem: why it cannot be read; then nothing is known.
struct FleetFacts {
  std::vector<k8s::Lease> turns{};
  std::optional<std::string> turns_problem{};
  std::map<std::string, std::string> entries{};  // of the ConfigMap haulout
  std::optional<std::string> entries_problem{};
};

struct NodeView {
  std::string name;
  std::string uid;
  bool agent = false;  // one has reported on this node
  // As the labels have it; empty: not there.
  std::string state, reason, reboot_required;
  std::string message;
  std::optional<WallTime> since;
  bool ready = false;
  bool unschedulable = false;
  bool foreign_cordon = false;        // and nobody of Haulout did it
  bool requested = false;             // a person asks for a reboot
  std::string request_reason;         // and may have said why
  std::optional<agent::Pause> pause;  // the node's own, in force
  std::string pool;                   // the label of the Node, or that of its turn; empty: not known
  std::string turn;                   // the Lease that it holds
  std::string from, to;               // versions, while an update is under way
  std::string os_image;
  std::optional<WallTime> last_update;
  std::optional<agent::PastAttempt> last_attempt;  // how the last attempt to update it ended
  // A time that the agent had set itself and has let pass, or at which one in maintenance should have been heard of.
  // Else an agent writes only when something changes, so these are the only silences that say something.
  std::optional<WallTime> overdue;
  bool operator==(const NodeView&) const = default;
};

NodeView node_view(const k8s::Node& node, const FleetFacts& facts, WallTime now);

// The turns in the namespace, and to whose slots they belong.
std::string pool_of(const k8s::Lease& turn);
std::string holder_of(const k8s::Lease& turn);  // the name of the Node

// "draining", "idle,NotReady", "<none>,SchedulingDisabled".
std::string state_text(const NodeView& node);
// What stands in the column MESSAGE.
std::string message_text(const NodeView& node, WallTime now);

// As kubectl writes ages: "42s", "3m5s", "12m", "2h7m", "30h", "4d3h", "400d"; "<invalid>" for what is ahead
// of us.
std::string age_text(WallTime since, WallTime now);

}  // namespace haulout::cli
