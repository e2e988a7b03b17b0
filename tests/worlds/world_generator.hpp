// A world, what befalls it, and how the wire misbehaves, all from one seed. Pure: nothing happens until stage().
//
// Whatever stands in the way of draining `node` is gone `healed_after` the start: closed budgets have opened,
// finalizers were removed, the wire is sound. A drain that waits long enough must therefore succeed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::sim {

// A seed means the same world for ever only within its generation: what is added to worlds later makes a new one, and
// the seeds that once found something are played with theirs.
//   1: workloads, budgets, finalizers, people who delete, faults of wire and server
//   2: hardships.hpp on top
//   3: an API server that comes back with an older cache
//   4: more volumes, of two drivers
//   5: storage that takes its time to attach, and more pods that want their volumes elsewhere
//   6: upheavals.hpp on top
//   7: adversities.hpp on top
//   8: migrations.hpp and oddities.hpp on top
inline constexpr unsigned newest_generation = 8;

struct GeneratorOptions {
  unsigned generation = newest_generation;
  std::size_t most_pods = 60;
  bool faults = true;          // of the wire, and restarts of the server
  bool other_people = true;    // who delete pods and namespaces
  bool unmanaged_pods = true;  // pods without a controller
};

struct GeneratedWorld {
  struct Incident {
    Duration after;
    std::string what;  // for the trace
    std::function<void(Cluster&)> act;
    bool heals = false;  // by what it stores: it has to happen again where an older state is restored
  };
  // When something happens that heals by itself: not before then is all well.
  Duration moment(SeededRng& rng, Duration latest);

  std::uint64_t seed = 0;
  Timing timing;
  std::vector<Json> objects;
  std::string node;  // the one to drain
  std::vector<Incident> incidents;
  std::vector<FaultRule> faults;  // times relative to TimePoint{}: see stage()
  Duration healed_after{};
  Duration detach_takes{};                 // the longest that a volume takes once its last pod has gone
  std::string webhook_ns;                  // whose evictions a webhook denies, or is down for
  std::string own_pod_uid;                 // of a pod on `node` that the drain may take for the one it runs in
  bool roomy = false;                      // nodes state room, and more than all pods need
  bool node_goes = false;                  // the Node is deleted or replaced, unless the drain is over by then
  bool rights_change = false;              // some are taken away for a while
  bool hopeless_answers = false;           // some say that asking again is in vain: a drain may believe them
  bool as_kubelet = false;                 // the drain has the credential of the node's kubelet
  std::optional<Duration> restored_after;  // etcd, from a backup
  std::vector<std::string> migrations;     // how each webhook behaves that has pods migrate
  std::vector<std::string> oddities;       // what oddities.hpp has put into it
  Duration migrations_take{};              // of all those pods, one after the other
};

GeneratedWorld generate_world(std::uint64_t seed, GeneratorOptions options = {});

// How long after a restored etcd people have noticed what heals anew.
inline constexpr Duration notice_restored = std::chrono::seconds(10);

// Loads the objects into the cluster and puts the incidents on its agenda, counted from now. Returns the fault rules
// with their times counted from now.
std::vector<FaultRule> stage(const GeneratedWorld& world, Cluster& cluster, TimePoint now);

}  // namespace haulout::sim
