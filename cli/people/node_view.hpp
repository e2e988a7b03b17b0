// View of one node for people: what its agent has written on it, and the slot and pause that concern it. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/pause.hpp"
#include "agent/node/record.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

// Facts that concern more than one node. A `…_problem` says why the member before it cannot be read; nothing is known
// of it then.
struct FleetFacts {
  std::vector<k8s::Lease> turns{};
  std::optional<std::string> turns_problem{};
  std::map<std::string, std::string> entries{};  // the data of the ConfigMap haulout
  std::optional<std::string> entries_problem{};
};

struct NodeView {
  std::string name;
  std::string uid;
  bool agent = false;  // an agent has reported on this node
  // The values of the labels; empty if a label is missing. `state` then comes from the record, if there is one.
  std::string state, reason, reboot_required;
  std::string message;
  std::optional<WallTime> since;
  bool ready = false;
  bool unschedulable = false;
  bool foreign_cordon = false;        // it is cordoned, but not by Haulout
  bool requested = false;             // a person has requested a reboot
  std::string request_reason;         // why the person requested it; may be empty
  std::optional<agent::Pause> pause;  // the pause of this node, if it is in force
  std::string pool;                   // from the label of the Node or of its Lease; empty: not known
  std::string turn;                   // name of the Lease of its slot; empty: it holds none
  std::string from, to;               // versions before and after the update, while it is under way
  std::string os_image;
  std::optional<WallTime> last_update;
  std::optional<agent::PastAttempt> last_attempt;  // how the last attempt to update it ended
  // The deadline that the agent has set itself and missed, or the time of the heartbeat that it has missed during
  // maintenance. Otherwise an agent writes only when something changes, so that its silence does not mean a failure.
  std::optional<WallTime> overdue;
  bool operator==(const NodeView&) const = default;
};

NodeView node_view(const k8s::Node& node, const FleetFacts& facts, WallTime now);

// The pool to which a slot belongs; empty if its Lease has no label of a pool.
std::string pool_of(const k8s::Lease& turn);
std::string holder_of(const k8s::Lease& turn);  // name of the Node that holds a slot

// For example "draining", "idle,NotReady", "<none>,SchedulingDisabled".
std::string state_text(const NodeView& node);
// The text of the column MESSAGE.
std::string message_text(const NodeView& node, WallTime now);

// The age in kubectl's format: "42s", "3m5s", "12m", "2h7m", "30h", "4d3h", "400d"; "<invalid>" if `since` is more than
// a minute in the future.
std::string age_text(WallTime since, WallTime now);

}  // namespace haulout::cli
