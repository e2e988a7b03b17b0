// Simulates drains on a copy of a cluster. The simulated cluster is loaded with the objects of a real one, and the code
// that would drain the real nodes runs in virtual time, so that hours take seconds. No I/O.
//
// rehearse() blocks until the simulation is over and cannot be cancelled. The same objects, options and seed give the
// same result.
#pragma once

#include <string>
#include <vector>

#include "drain/options.hpp"
#include "rehearse/snapshot.hpp"
#include "rehearse/timeline.hpp"
#include "sim/objects.hpp"

namespace haulout::rehearse {

struct Assumptions {
  Duration ready_after = std::chrono::seconds(30);  // time from the binding of a new pod until it is Ready
  // Longest time that a pod takes to terminate; unset: its whole grace period.
  std::optional<Duration> terminate_within;
  // Time from the end of the last pod that uses a volume on a node until the volume is detached from the node.
  Duration detach_within = std::chrono::seconds(30);
  // Time from the binding of a pod until the volume that it uses is attached. If only one node may have the volume, the
  // time counts from when the other node has detached it. The pod begins to start when the volume is attached.
  Duration attach_within = std::chrono::seconds(15);
  Duration give_up = std::chrono::hours(24);  // limit for the drain of a node if the options have no timeout
};

struct RehearsalInput {
  Snapshot snapshot;
  std::vector<std::string> nodes;  // names of the nodes to drain, all by one `haulout drain`
  std::string selector;            // label selector of the nodes to drain, used instead of `nodes`
  drain::Options drain;
  Assumptions assumptions;
  std::uint64_t seed = 1;
  OnProgress on_progress{};  // called while the snapshot is read
};

// A pod for which the simulated scheduler has found no node.
struct NoRoom {
  std::string pod;  // namespace/name
  std::string controller;
  std::string message;  // the scheduler's message: why no node has capacity
  // The node on which the pod would fit if it preempted pods of lower priority, as a real scheduler may let it do;
  // empty if there is none. A rehearsal does not simulate preemption.
  std::string preempts_on{};
};

struct Rehearsal {
  std::vector<drain::Report> drains;  // reports of the drains, one per node, in the order of the nodes
  Duration took{};                    // virtual time that all drains took together
  bool timeout_given = false;         // true if the options have a timeout; false: `give_up` was used
  // Pods without a node at the end. Does not contain pods that had no node before the drains.
  std::vector<NoRoom> no_room;
  // Pods of the drained nodes whose placement depends on something that the rehearsal does not simulate (volumes,
  // topology spread, pod affinity, host ports). A real scheduler may place them on other nodes than the rehearsal, or
  // on none.
  std::vector<std::string> not_weighed;
  std::vector<std::string> assumed;  // a phrase for each assumption made because no snapshot contains the fact
  std::size_t assumed_of_world = 0;  // the first ones of `assumed`, which would be the same for other nodes
  Timeline timeline;
};

// Runs the simulation. Fails with Errc::decode if the snapshot is invalid, and with Errc::invalid if no node has one of
// the names or matches the selector.
Result<Rehearsal> rehearse(RehearsalInput input);
// The same with these objects instead of the documents of the snapshot. The time of the snapshot is `read_at` of it.
Result<Rehearsal> rehearse(RehearsalInput input, std::vector<sim::Json> objects);

}  // namespace haulout::rehearse
