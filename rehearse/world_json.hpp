// Functions by which a rehearsal sets up its simulated cluster from a snapshot, and reads its results from that
// cluster. No I/O. They borrow the cluster and cannot fail. Stage calls those that set the cluster up; a rehearsal of a
// drain or of a fleet calls the others.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// Returns the delays of the simulated cluster that these assumptions give.
sim::Timing timing_of(const Assumptions& assumptions);
// Returns how long the simulated cluster runs before and after a rehearsal, so that its controllers have nothing left
// to do.
Duration rest_of(const Assumptions& assumptions);

// Advances `newest` to the newest time in the object. Ignores times after `now`, because they come from a wrong clock.
void weigh_times(const sim::Json& object, WallTime now, std::optional<WallTime>& newest);
// Drops large fields that nothing in a rehearsal reads. Most of the text of a snapshot is in them.
void drop_unread(sim::Json& object);
// Returns true if the API server calls this webhook (an entry of `webhooks` of its configuration) for evictions.
bool is_asked_about_evictions(const sim::Json& webhook);

// Returns the nodes whose Ready condition is Unknown, because their kubelets have not reported for a long time.
std::vector<std::string> silent_nodes(const sim::Cluster& cluster);

// For each budget that selects pods whose controllers are not simulated, keeps the number of expected pods in its
// status (expectedPods), because the simulation cannot compute it. Ignores budgets for which the real disruption
// controller could not compute it either. To be called once, before the cluster runs.
void keep_expectations(sim::Cluster& cluster);

// Returns the pods of DaemonSets if the snapshot has no DaemonSets at all, else an empty list. The rehearsal assumes
// that the DaemonSets of these pods exist.
std::vector<std::string> pods_of_missing_daemon_sets(const sim::Cluster& cluster);

// Returns a phrase for each assumption about pods (how long they take, and what happens to those that were not Ready in
// the snapshot), webhooks and quotas. To be called before the cluster runs, because it reads the objects as they were
// loaded.
std::vector<std::string> assumed_of_pods(const Assumptions& assumptions, const sim::Cluster& cluster);

// Returns the UIDs of the pods without a node.
std::set<std::string> homeless(const sim::Cluster& cluster);
// Returns the pods without a node, each with the reason, except those whose UIDs are in `before`.
std::vector<NoRoom> no_room(const sim::Cluster& cluster, const std::set<std::string>& before);
// Returns the latest deletionTimestamp of all terminating pods, at which all their grace periods have ended. Returns
// nullopt if no pod is terminating.
std::optional<WallTime> last_to_go(const sim::Cluster& cluster);
// Removes from `no_room`, and returns, the pods that find capacity once terminating pods are deleted. Assumes that only
// the terminating pods whose grace periods have not ended at `now` will be deleted. Pods without a node that are not in
// `no_room` use some of that capacity, too.
std::vector<NoRoom> take_with_room_later(std::vector<NoRoom>& no_room, const sim::Cluster& cluster, WallTime now);
// Adds to `assumed` a phrase about the pods that have found capacity later: those in `first` that are not in `now`.
void assume_later_room(std::vector<std::string>& assumed, const std::vector<NoRoom>& first,
                       const std::vector<NoRoom>& now);
// If a rule or the label of Cluster API makes the drains of these nodes wait until pods have finished, adds to
// `assumed` the phrase that they do not finish during the rehearsal.
void assume_no_work_ends(std::vector<std::string>& assumed, const drain::Policy& policy, const sim::Cluster& cluster,
                         const std::set<std::string>& nodes);
// If the drains create EvictionRequests, lets the simulated server accept them and leaves them unanswered, because a
// rehearsal has no responders. Adds the pods of these nodes that have some.
void assume_silent_responders(std::vector<std::string>& assumed, const drain::Options& options, sim::Cluster& cluster,
                              const std::set<std::string>& nodes);
// If preemption would help a pod of `no_room`, adds to `assumed` the phrase that no pod is preempted.
void assume_no_preemption(std::vector<std::string>& assumed, const std::vector<NoRoom>& no_room);
// Returns the pods of `node` whose placement depends on something that the rehearsal does not simulate, each with what
// that is. See Rehearsal::not_weighed.
std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node);

// Prepares the volumes in the cluster, and returns a phrase for each assumption. To be called once, before the cluster
// runs. Removes VolumeAttachments that are not attached yet, because the simulation does not continue them; it attaches
// the volumes again if pods need them. If running pods use the volumes of a driver and the snapshot has neither a
// VolumeAttachment nor the CSIDriver of that driver, assumes that the driver needs none.
std::vector<std::string> prepare_volumes(sim::Cluster& cluster);

// Returns phrases about the times that volumes take to be detached and attached. Returns none if no volume is attached
// to `nodes`.
std::vector<std::string> assumed_of_volumes(const Assumptions& assumptions, const sim::Cluster& cluster,
                                            const std::set<std::string>& nodes);

// For the rehearsal of a fleet: removes the traces of earlier updates from the loaded snapshot, and reads the longest
// grace period of its pods.

// What forget_haulout() has removed, as far as the report of the rehearsal mentions it.
struct Forgotten {
  std::vector<std::string> pauses;     // what was paused: "node/a", "the ConfigMap haulout/haulout"
  std::vector<std::string> hooks;      // nodes with annotation hooks, to which other programs would respond
  std::vector<std::string> half_done;  // nodes that an agent had cordoned for an update
};

// Removes from the simulated cluster what agents have written: their labels, annotations and cordons, and all Leases.
// Removes pauses, requests and hooks, because they would keep the simulation from ending or are not simulated. Removes
// managed fields and images of Nodes, because they are large and not needed. Creates the namespace of the agents if it
// does not exist. To be called before the cluster runs.
Forgotten forget_haulout(sim::Cluster& cluster, const agent::AgentConfig& config);

// Returns the longest grace period of all pods, but at least Kubernetes' default of 30 s.
Duration longest_grace(const sim::Cluster& cluster);

}  // namespace haulout::rehearse
