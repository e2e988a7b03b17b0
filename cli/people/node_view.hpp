// What `haulout status` and `explain` can derive about one node from the objects of the API server. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/pause.hpp"
#include "agent/node/record.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

// The two functions below read the state that an agent has written on its Node. Pure.

// Returns the value of the label haulout.dev/state; empty if no agent has reported on this node.
std::string state_shown(const k8s::Node& node);
// Returns true if a node in this state is being updated, that is, it is between taking and releasing its slot (the
// permission to be unavailable). Returns false for degraded.
bool is_under_way(std::string_view state);

// The view of one node that `haulout status` and `explain` show: what its agent has written on the Node, its slot
// (stored in a Lease), and the pause in force. Pure.

// What concerns more than one node: the Leases of slots and the ConfigMap `haulout`. If a member `…_problem` is set,
// the member before it could not be read and is empty, and it contains the error.
struct FleetFacts {
  std::vector<k8s::Lease> turns{};
  std::optional<std::string> turns_problem{};
  std::map<std::string, std::string> entries{};  // data of the ConfigMap `haulout`, for example pauses
  std::optional<std::string> entries_problem{};
};

struct NodeView {
  std::string name;
  std::string uid;
  bool agent = false;  // an agent has reported on this node
  // Values of the labels that the agent writes; empty if a label is missing. If the label of `state` is missing, the
  // value comes from the agent's record, an annotation of the Node.
  std::string state, reason, reboot_required;
  std::string message;
  std::optional<WallTime> since;
  bool ready = false;
  bool unschedulable = false;
  bool foreign_cordon = false;        // the node is cordoned, but not by Haulout
  bool requested = false;             // a person has requested a reboot
  std::string request_reason;         // why the person requested the reboot; may be empty
  std::optional<agent::Pause> pause;  // the pause of this single node, if one is in force
  std::string pool;                   // the pool, from a label of the Node or of its Lease; empty: not known
  std::string turn;                   // name of the Lease of its slot; empty: the node holds no slot
  std::string from, to;               // versions before and after the update, while it is under way
  std::string os_image;
  std::optional<WallTime> last_update;
  std::optional<agent::PastAttempt> last_attempt;  // how the last attempt to update the node ended
  // The time by which the agent should have written, if that was too long ago, so that the agent seems to have failed:
  // its own deadline for the present state or, during an update, two periods after its last heartbeat. At other times
  // an agent writes only when something changes, so that its silence is not a failure.
  std::optional<WallTime> overdue;
  bool operator==(const NodeView&) const = default;
};

NodeView node_view(const k8s::Node& node, const FleetFacts& facts, WallTime now);

// Returns the pool of the slot in the Lease; empty if the Lease has no label with a pool.
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
