// What `haulout status` and `explain` can derive from the objects of the API server about one node and its pods. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/pause.hpp"
#include "agent/node/record.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::cli {

// The two functions below read the state that an agent has written on its Node. Pure.

// Returns the value of the label haulout.dev/state; empty if no agent has reported on this node.
std::string state_shown(const k8s::Node& node);
// Returns true if a node in this state is being updated, that is, it is between taking and releasing its slot (the
// permission to be unavailable). Returns false for degraded, although a degraded node keeps its slot.
bool is_under_way(std::string_view state);

// The view of one node that `haulout status` and `explain` show: what its agent has written on the Node, its slot
// (stored in a Lease), and the pause in force. Pure.

// What concerns more than one node: the Leases of slots and the ConfigMap `haulout`. If the Leases or the ConfigMap
// could not be read, their member is empty, and the member `…_problem` after it contains the error.
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
  bool foreign_cordon = false;             // the node is cordoned, but not by Haulout
  bool requested = false;                  // a person has requested a reboot
  std::optional<WallTime> requested_at{};  // the time for which it is requested; nothing: at once
  std::string request_reason;              // why the person requested the reboot; may be empty
  std::string request_problem;             // why a request cannot be read; empty if it can, or there is none
  std::optional<agent::Pause> pause;       // the pause of this single node, if one is in force
  std::string pool;                        // the pool, from a label of the Node or of its Lease; empty: not known
  std::string turn;                        // name of the Lease of its slot; empty: the node holds no slot
  std::string fleetlock_id;  // the id with which it took its slot from a FleetLock server; empty: it took none there
  std::string from, to;      // versions before and after the update, while it is under way
  // The package updates that wait, or that the agent installs. If there are many, only the first ones are listed, and
  // the last element is "and N more".
  std::vector<std::string> package_updates;
  std::string os_image;
  std::optional<WallTime> last_update;
  std::optional<agent::PastAttempt> last_attempt;  // how the last attempt to update the node ended
  // Set if the agent seems to have failed: the time by which it should have written its Node, and which it has missed
  // by more than five minutes. That time is the agent's own deadline for the present state or, from cordon to uncordon,
  // two heartbeat periods after its last heartbeat. At other times an agent writes only when something changes, so a
  // long time without a write is not a failure.
  std::optional<WallTime> overdue;
  bool operator==(const NodeView&) const = default;
};

NodeView node_view(const k8s::Node& node, const FleetFacts& facts, WallTime now);
// Returns true if a node with this reason waits because of the roll-out of its pool. Its message differs between pools.
bool waits_for_roll_out(std::string_view reason);

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

// For `haulout explain`: what a drain by an agent would do to each pod of a node if the drain began now, and which
// budgets (PodDisruptionBudgets) select those pods. Pure.

enum class PodFate {
  // The eviction of the pod cannot succeed now, because of a budget or because its namespace is being deleted.
  blocked,
  parked,   // policy parks the pod, for example because an annotation protects it
  refused,  // policy forbids the drain because of the pod
  leaving,  // the pod is already terminating
  evict,
  stay,
};
std::string_view to_string(PodFate fate);
// Returns true if a pod with this fate keeps a drain from ending: blocked, parked or refused.
bool holds_up(PodFate fate);

// Whether the API server would accept the eviction of a pod now, whatever Haulout's own policy is. `unknown` if budgets
// cannot be read; `not_asked` for a pod that stays or is terminating.
enum class Evictable { yes, no, unknown, not_asked };
std::string_view to_string(Evictable evictable);  // returns "" for `not_asked`

// The status of a budget that selects a pod.
struct PodBudget {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, desired = 0;
  bool operator==(const PodBudget&) const = default;
};

struct PodView {
  std::string key;
  std::string uid{};
  std::string controller;  // "ReplicaSet/web-6d4b9"; empty: the pod has none
  PodFate fate = PodFate::evict;
  std::string reason;                    // CamelCase reason of `fate`, or of a remark about the eviction; empty: none
  std::string message;                   // a clause that explains `fate` to a person
  std::vector<drain::Finding> findings;  // remarks of the drain's filters about the pod
  std::vector<PodBudget> budgets{};      // the budgets that select the pod
  Evictable evictable = Evictable::not_asked;
  std::optional<placement::PodFit> fit{};  // whether the pod fits on another node; unset: not checked
  bool operator==(const PodView&) const = default;
};

struct BudgetView {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, needed = 0;
  std::size_t pods = 0;  // number of pods of the node that the budget selects and that a drain would evict
  bool operator==(const BudgetView&) const = default;
};

// Returns the pods in the order in which a drain would evict them, then the pods that stay, by name. `budgets` are all
// budgets of the cluster; unset means that they cannot be read. Then no pod counts as blocked by a budget, and
// `evictable` is never `yes`.
std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now,
                               bool node_ready = true);
// Returns the budgets that select at least one pod of the node that a drain would evict, sorted by name.
std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now);

}  // namespace haulout::cli
