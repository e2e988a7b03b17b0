// A drain, played on a copy of a cluster: the simulated cluster is loaded with the objects of a real one, and the very
// drain that would run there runs here, in virtual time. Changes nothing anywhere and knows no network; hours of the
// cluster take seconds.
//
// Blocks until it is over. Same objects, options and seed: same result.
#pragma once

#include <string>
#include <vector>

#include "drain/options.hpp"
#include "rehearse/snapshot.hpp"
#include "rehearse/timeline.hpp"

namespace haulout::rehearse {

struct Assumptions {
  Duration ready_after = std::chrono::seconds(30);  // from binding a replacement to its being Ready
  std::optional<Duration> terminate_within;         // unset: every pod takes its whole grace period
  // From the end of its last pod on a node until a volume is detached there.
  Duration detach_within = std::chrono::seconds(30);
  // From the binding of a pod that wants it, or its detaching elsewhere if one node alone may have it, until a volume
  // is attached. Its pod begins to start then.
  Duration attach_within = std::chrono::seconds(15);
  Duration give_up = std::chrono::hours(24);  // on a node, unless the drain has a timeout of its own
};

struct RehearsalInput {
  Snapshot snapshot;
  std::vector<std::string> nodes;  // names; drained as `haulout drain` drains several
  std::string selector;            // instead of names
  drain::Options drain;
  Assumptions assumptions;
  std::uint64_t seed = 1;
};

// A pod that has found no node at the end.
struct NoRoom {
  std::string pod;  // namespace/name
  std::string controller;
  std::string message;  // the scheduler's
  // Where it would have room if it preempted pods of lower priority, as it may; empty: nowhere. No rehearsal plays
  // that.
  std::string preempts_on{};
};

struct Rehearsal {
  std::vector<drain::Report> drains;  // one per node, in their order
  Duration took{};                    // of all of them
  bool timeout_given = false;         // else a drain that is blocked would never end
  std::vector<NoRoom> no_room;        // not those that had none before
  // Pods that leave and whose placement depends on what the rehearsal does not weigh (volumes, topology spread, pod
  // affinity, host ports): where it finds room for them, a real scheduler may not.
  std::vector<std::string> not_weighed;
  std::vector<std::string> assumed;  // what no snapshot tells, a phrase each
  Timeline timeline;
};

// Errc::decode: a snapshot that cannot be used. Errc::invalid: no node of that name or label.
Result<Rehearsal> rehearse(const RehearsalInput& input);

}  // namespace haulout::rehearse
