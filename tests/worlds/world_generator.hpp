// Generates a world, its incidents and the faults of the connection to its API server from one seed. Pure: nothing
// happens before stage().
//
// At the time `healed_after` after the start, all obstacles to draining `node` are resolved: exhausted budgets allow
// disruptions, finalizers are removed, and the connection has no faults. So a drain that waits long enough must
// succeed, unless `node_goes` or `hopeless_answers` is set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/test_cluster.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::sim {

// A seed gives the same world for ever only within its generation. Later additions to worlds make a new generation.
// Seeds that once found a bug are replayed with their own generation.
//   1: workloads, budgets, finalizers, people who delete, faults of wire and server
//   2: adds hardships.hpp
//   3: adds an API server that restarts with an older cache
//   4: adds more volumes, of two drivers
//   5: adds storage that attaches slowly, and more pods that need their volumes on another node
//   6: adds upheavals.hpp
//   7: adds adversities.hpp
//   8: adds migrations.hpp and oddities.hpp
//   9: adds work.hpp
//   10: adds surges.hpp
//   11: adds gangs.hpp, and pods of DaemonSets that the drain evicts
//   12: adds responders.hpp
//   13: adds latecomers.hpp
inline constexpr unsigned newest_generation = 13;

struct GeneratorOptions {
  unsigned generation = newest_generation;
  std::size_t most_pods = 60;
  bool faults = true;          // faults of the connection, and restarts of the server
  bool other_people = true;    // people who delete pods and namespaces
  bool unmanaged_pods = true;  // pods without a controller
};

struct GeneratedWorld {
  struct Incident {
    Duration after;
    std::string what;  // for the trace
    std::function<void(TestCluster&)> act;
    bool heals = false;  // resolves an obstacle by a write; must run again after an etcd restore
  };
  // Picks a random time until `latest` for an incident, and raises `healed_after` to at least that time.
  Duration moment(SeededRng& rng, Duration latest);

  std::uint64_t seed = 0;
  Timing timing;
  std::vector<Json> objects;
  std::string node;  // name of the node to drain
  std::vector<Incident> incidents;
  std::vector<FaultRule> faults;  // times relative to TimePoint{}; stage() shifts them
  Duration healed_after{};
  Duration detach_takes{};                 // upper limit for detaching a volume after its last pod
  std::string webhook_ns;                  // namespace whose evictions a webhook denies or fails; may be empty
  std::string own_pod_uid;                 // UID of a pod on `node` that the drain may take for its own
  bool roomy = false;                      // nodes state more allocatable resources than all pods need
  bool node_goes = false;                  // the Node is deleted or replaced, unless the drain ends earlier
  bool rights_change = false;              // some rights are taken away for a while
  bool hopeless_answers = false;           // some answers say that a retry is useless; then the drain may fail
  bool as_kubelet = false;                 // the drain uses the credential of the node's kubelet
  std::optional<Duration> restored_after;  // when etcd is restored from a backup
  std::vector<std::string> migrations;     // behaviour of each webhook that migrates pods
  std::vector<std::string> oddities;       // names of the additions of oddities.hpp and later ones
  Duration responders_take{};              // upper limit for all turns of responders, and for silent ones
  Duration migrations_take{};              // upper limit for migrating all pods one after another
};

GeneratedWorld generate_world(std::uint64_t seed, GeneratorOptions options = {});

// Time after an etcd restore until people repeat the incidents with `heals` that the restore has undone.
inline constexpr Duration notice_restored = std::chrono::seconds(10);

// Loads the objects into the cluster and plans the incidents on its agenda. Returns the fault rules. All times count
// from `now`.
std::vector<FaultRule> stage(const GeneratedWorld& world, TestCluster& cluster, TimePoint now);

}  // namespace haulout::sim
