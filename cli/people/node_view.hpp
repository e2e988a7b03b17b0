// What `haulout status` and `explain` know about one node from the objects of the API server. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/pause.hpp"
#include "agent/node/record.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

// The state that an agent has written on its Node, for commands that only read it. Pure.

// Returns the value of the label haulout.dev/state; empty if no agent has reported on this node.
std::string state_shown(const k8s::Node& node);
// Returns true if a node in this state is being updated: from taking its slot (the permission to be unavailable) to
// releasing it. False for degraded.
bool is_under_way(std::string_view state);

// The view of one node that `haulout status` and `explain` show: what its agent has written on the Node, its slot (the
// permission to be unavailable for an update, stored in a Lease), and the pause in force. Pure.

// Facts that concern more than one node: the Leases of slots and the ConfigMap. If a `…_problem` is set, it says why
// the member before it could not be read; that member is then empty.
struct FleetFacts {
  std::vector<k8s::Lease> turns{};
  std::optional<std::string> turns_problem{};
  std::map<std::string, std::string> entries{};  // data of the ConfigMap `haulout`, such as pauses
  std::optional<std::string> entries_problem{};
};

struct NodeView {
  std::string name;
  std::string uid;
  bool agent = false;  // an agent has reported on this node
  // Values of the labels that the agent writes; empty if a label is missing. A missing `state` is taken from the record
  // in the annotation, if there is one.
  std::string state, reason, reboot_required;
  std::string message;
  std::optional<WallTime> since;
  bool ready = false;
  bool unschedulable = false;
  bool foreign_cordon = false;        // the node is cordoned, but not by Haulout
  bool requested = false;             // a person has requested a reboot
  std::string request_reason;         // why the person requested the reboot; may be empty
  std::optional<agent::Pause> pause;  // the pause of this node alone, if such a pause is in force
  std::string pool;                   // the pool, from a label of the Node or of its Lease; empty: not known
  std::string turn;                   // name of the Lease of its slot; empty: the node holds no slot
  std::string from, to;               // versions before and after the update, while it is under way
  std::string os_image;
  std::optional<WallTime> last_update;
  std::optional<agent::PastAttempt> last_attempt;  // how the last attempt to update the node ended
  // Set if the agent seems to have failed: the deadline that it has set itself and missed, or the heartbeat that it has
  // missed during an update. At other times an agent writes only when something changes, so that its silence does not
  // mean a failure.
  std::optional<WallTime> overdue;
  bool operator==(const NodeView&) const = default;
};

NodeView node_view(const k8s::Node& node, const FleetFacts& facts, WallTime now);

// Returns the pool to which the slot in the Lease belongs; empty if the Lease has no label of a pool.
std::string pool_of(const k8s::Lease& turn);
// Returns the name of the Node that holds the slot in the Lease.
std::string holder_of(const k8s::Lease& turn);

// Returns the text of the column STATE of `haulout status`, for example "draining", "idle,NotReady",
// "<none>,SchedulingDisabled".
std::string state_text(const NodeView& node);
// Returns the text of the column MESSAGE of `haulout status`.
std::string message_text(const NodeView& node, WallTime now);

// Returns the time from `since` to `now` in kubectl's format for ages: "42s", "3m5s", "12m", "2h7m", "30h", "4d3h",
// "400d"; "<invalid>" if `since` is more than a minute in the future.
std::string age_text(WallTime since, WallTime now);

}  // namespace haulout::cli
