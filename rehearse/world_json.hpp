// How a rehearsal sets up the simulated cluster, and what its report reads from it. No I/O.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

sim::Timing timing_of(const Assumptions& assumptions);
// Returns how long the simulated cluster gets to come to rest, before a rehearsal and after it.
Duration rest_of(const Assumptions& assumptions);

// Returns the newest time in the objects; nothing if they have none. Ignores times after `now`, since they come from a
// wrong clock.
std::optional<WallTime> newest_time(const std::vector<sim::Json>& objects, WallTime now);

// Returns the nodes whose Ready condition is Unknown, because their kubelet has not reported for a long time.
std::vector<std::string> silent_nodes(const sim::Cluster& cluster);

// For each budget over pods whose controllers are not simulated: fixes the number of expected pods to that in the
// status of the snapshot. Leaves out budgets for which the real disruption controller could not compute it. Call it
// once, before the cluster runs.
void keep_expectations(sim::Cluster& cluster);

// Returns the pods of DaemonSets if the snapshot has no DaemonSets at all. The rehearsal assumes that these exist.
std::vector<std::string> pods_of_missing_daemon_sets(const sim::Cluster& cluster);

// Returns a phrase for each assumption about pods: how long they take, and what becomes of those that were not Ready in
// the snapshot. Also about webhooks and quotas. Looks at the cluster as it was loaded.
std::vector<std::string> assumed_of_pods(const Assumptions& assumptions, const sim::Cluster& cluster);

// Returns the UIDs of the pods that have no node.
std::set<std::string> homeless(const sim::Cluster& cluster);
// Returns these pods with the reason, without those in `before`.
std::vector<NoRoom> no_room(const sim::Cluster& cluster, const std::set<std::string>& before);
// Returns the latest deletionTimestamp of all terminating pods: when their grace periods have ended. Nothing if no pod
// is terminating.
std::optional<WallTime> last_to_go(const sim::Cluster& cluster);
// Removes from `no_room`, and returns, the pods that find room once terminating pods are deleted, as far as their grace
// periods have not ended at `now`. Other pods that wait for a node take their share of that room.
std::vector<NoRoom> take_with_room_later(std::vector<NoRoom>& no_room, const sim::Cluster& cluster, WallTime now);
// Adds a phrase about the pods of `first` that are not in `now`: those found room later.
void assume_later_room(std::vector<std::string>& assumed, const std::vector<NoRoom>& first,
                       const std::vector<NoRoom>& now);
// Adds a phrase that no pod is preempted, if preemption would help a pod of `no_room`.
void assume_no_preemption(std::vector<std::string>& assumed, const std::vector<NoRoom>& no_room);
// Returns the pods of `node` for Rehearsal::not_weighed, each with what the rehearsal does not weigh.
std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node);

}  // namespace haulout::rehearse
