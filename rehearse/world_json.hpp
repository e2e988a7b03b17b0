// Functions by which a rehearsal sets up its simulated cluster from a snapshot, and by which its report reads results
// from that cluster. No I/O.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

sim::Timing timing_of(const Assumptions& assumptions);
// Returns how long the simulated cluster runs before and after a rehearsal, so that its controllers have nothing left
// to do.
Duration rest_of(const Assumptions& assumptions);

// Returns the newest time in the objects; nothing if they have none. Ignores times after `now`, since they come from a
// wrong clock.
std::optional<WallTime> newest_time(const std::vector<sim::Json>& objects, WallTime now);

// Returns the nodes whose Ready condition is Unknown, because their kubelet has not reported for a long time.
std::vector<std::string> silent_nodes(const sim::Cluster& cluster);

// Keeps the number of expected pods (status.expectedPods) of each budget that selects pods whose controllers are not
// simulated, since the simulation cannot compute it. Ignores budgets for which the real disruption controller could not
// compute it either. Call it once, before the cluster runs.
void keep_expectations(sim::Cluster& cluster);

// Returns the pods of DaemonSets if the snapshot has no DaemonSets at all. The rehearsal then assumes that the
// DaemonSets of these pods exist.
std::vector<std::string> pods_of_missing_daemon_sets(const sim::Cluster& cluster);

// Returns a phrase for each assumption about pods: how long they take, and what becomes of those that were not Ready in
// the snapshot. Also about webhooks and quotas. Call it before the cluster runs, because it reads the objects as they
// were loaded.
std::vector<std::string> assumed_of_pods(const Assumptions& assumptions, const sim::Cluster& cluster);

// Returns the UIDs of the pods that have no node.
std::set<std::string> homeless(const sim::Cluster& cluster);
// Returns the pods that have no node, with the reason, without the pods whose UIDs are in `before`.
std::vector<NoRoom> no_room(const sim::Cluster& cluster, const std::set<std::string>& before);
// Returns the latest deletionTimestamp of all terminating pods, the time at which all their grace periods have ended.
// Nothing if no pod is terminating.
std::optional<WallTime> last_to_go(const sim::Cluster& cluster);
// Removes from `no_room`, and returns, the pods that find capacity once terminating pods are deleted. Counts only
// terminating pods whose grace periods have not ended at `now`. Other pods without a node take their share of that
// capacity.
std::vector<NoRoom> take_with_room_later(std::vector<NoRoom>& no_room, const sim::Cluster& cluster, WallTime now);
// Adds to `assumed` a phrase about the pods that found capacity later: those in `first` that are not in `now`.
void assume_later_room(std::vector<std::string>& assumed, const std::vector<NoRoom>& first,
                       const std::vector<NoRoom>& now);
// Adds to `assumed` the phrase that no pod is preempted, if preemption would help a pod of `no_room`.
void assume_no_preemption(std::vector<std::string>& assumed, const std::vector<NoRoom>& no_room);
// Returns the pods of `node` whose placement depends on something that the rehearsal does not simulate, each with that
// thing. See Rehearsal::not_weighed.
std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node);

// Prepares the volumes in the cluster, and returns a phrase for each assumption. Call it once, before the cluster runs.
// Removes VolumeAttachments that were being attached: the simulation does not continue them, but attaches the volumes
// again if pods need them. Assumes that a driver attaches nothing if running pods use its volumes without any
// VolumeAttachment.
std::vector<std::string> prepare_volumes(sim::Cluster& cluster);

// Returns phrases about how long volumes take to be detached and attached; none if nothing is attached to `nodes`.
std::vector<std::string> assumed_of_volumes(const Assumptions& assumptions, const sim::Cluster& cluster,
                                            const std::vector<std::string>& nodes);

}  // namespace haulout::rehearse
