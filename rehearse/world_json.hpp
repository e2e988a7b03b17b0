// What a rehearsal tells the simulated cluster, and what its report asks it. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

sim::Timing timing_of(const Assumptions& assumptions);
// How long the world has before a rehearsal, and after it, to come to rest.
Duration rest_of(const Assumptions& assumptions);

// The moment that the snapshot tells of last; nothing where it has no times. What lies ahead of `now` is the mistake of
// somebody's clock, and does not count.
std::optional<WallTime> newest_time(const std::vector<sim::Json>& objects, WallTime now);

// Nodes whose kubelet has not been heard of for so long that their Ready condition says Unknown.
std::vector<std::string> silent_nodes(const sim::Cluster& cluster);

// Budgets over pods whose controllers are not played go on expecting as many as the snapshot's status says, unless the
// real disruption controller could not tell either. Once, before the world goes on.
void keep_expectations(sim::Cluster& cluster);

// Pods whose DaemonSets nobody can look up, since the snapshot has none at all. Those are taken to exist.
std::vector<std::string> pods_of_missing_daemon_sets(const sim::Cluster& cluster);

// How long pods take, and what becomes of those that the snapshot caught before they were Ready; a phrase each. Of the
// world as it was loaded.
std::vector<std::string> assumed_of_pods(const Assumptions& assumptions, const sim::Cluster& cluster);

// UIDs of pods that no node has been found for.
std::set<std::string> homeless(const sim::Cluster& cluster);
// The same pods with the reason, but those in `before`.
std::vector<NoRoom> no_room(const sim::Cluster& cluster, const std::set<std::string>& before);
// When the last of the pods that are terminating will have gone, as far as their grace periods tell.
std::optional<WallTime> last_to_go(const sim::Cluster& cluster);
// Takes out of them, and returns, those that find room once the pods have gone that are terminating elsewhere and whose
// time is not up. What waits for a node, too, takes its part of that room.
std::vector<NoRoom> take_with_room_later(std::vector<NoRoom>& no_room, const sim::Cluster& cluster, WallTime now);
// Those that had no room at first and have it now.
void assume_later_room(std::vector<std::string>& assumed, const std::vector<NoRoom>& first,
                       const std::vector<NoRoom>& now);
// Adds that nobody is preempted, where that matters.
void assume_no_preemption(std::vector<std::string>& assumed, const std::vector<NoRoom>& no_room);
// Of the pods on that node.
std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node);

}  // namespace haulout::rehearse
