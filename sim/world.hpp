// What the parts of the simulated cluster share: storage, agenda, the world's delays and its switches. Owned by
// Cluster; every part keeps a reference.
#pragma once

#include <set>
#include <string>

#include "retry/rng.hpp"
#include "sim/agenda.hpp"
#include "sim/identity.hpp"
#include "sim/store.hpp"

namespace haulout::sim {

// Every delay of the world. The defaults are those of an idle cluster; pods may override theirs by annotation:
//   sim.haulout.dev/starts-after: 5s       time from binding to Ready
//   sim.haulout.dev/never-ready: "true"    runs, but is never Ready
//   sim.haulout.dev/terminates-after: 2s   time from the request to stop to the final delete, at most the grace period
//   sim.haulout.dev/never-terminates: "true"
//   sim.haulout.dev/prefers-node: n1       the scheduler puts it there if it may
// and a budget what its pods' controllers want, who need not be there:
//   sim.haulout.dev/expects-pods: "3"
struct Timing {
  Duration api_latency = std::chrono::milliseconds(2);         // there and back, without what the server takes itself
  Duration api_latency_jitter = std::chrono::milliseconds(3);  // added, uniformly
  Duration watch_latency = std::chrono::milliseconds(1);       // a change reaches a watcher after this
  Duration watch_latency_jitter = std::chrono::milliseconds(1);
  // Between reading a budget and writing it; another eviction's write in between costs a conflict.
  Duration budget_write = std::chrono::milliseconds(1);
  Duration conflict_pause = std::chrono::milliseconds(500);  // the server's own retry; 20 tries
  Duration controller_lag = std::chrono::milliseconds(50);   // a workload controller notices
  Duration scheduler_lag = std::chrono::milliseconds(100);   // from seeing a pod to binding it
  Duration pod_start = std::chrono::seconds(1);
  double termination = 1.0;                      // fraction of the grace period that a pod uses
  Duration termination_limit = Duration::max();  // and no more than this
  // A kubelet tells of one pod's end after the other; each takes it this long.
  Duration kubelet_report{};
  Duration disruption_lag = std::chrono::milliseconds(20);
  Duration disruption_timeout = std::chrono::minutes(2);  // an eviction not seen as a deletion by then is given back
  Duration taint_lag = std::chrono::milliseconds(11);
  Duration namespace_lag = std::chrono::milliseconds(200);  // from terminating to its pods being deleted
  Duration pod_gc_lag = std::chrono::seconds(40);           // pods of a Node that has gone
  // A Lease without a living owner: after its last owner has gone, and when it comes with dead ones only.
  Duration gc_lag = std::chrono::milliseconds(15);
  Duration gc_jitter = std::chrono::milliseconds(115);
  Duration dead_owner_lag = std::chrono::milliseconds(14);
  Duration dead_owner_jitter = std::chrono::milliseconds(26);
  Duration attach = std::chrono::seconds(1);          // a volume, by its driver
  Duration unmount = std::chrono::milliseconds(500);  // from the end of its last pod to the request to detach it
  Duration detach = std::chrono::seconds(2);
  Duration attach_retry = std::chrono::seconds(5);  // a volume that another node still has is asked for again
  Duration force_detach = std::chrono::minutes(6);  // of a node whose kubelet is silent; the controller's own figure
  Duration event_ttl = std::chrono::hours(1);
  Duration bookmark_every = std::chrono::seconds(60);
  std::chrono::seconds watch_default{1800};
};

struct Switches {
  std::string user = "haulout";  // who the requests come from, unless they carry one of the tokens
  Tokens tokens;
  std::set<std::string> forbidden;  // "create pods/eviction", "watch pods", …
  TimePoint refused_until{};        // connections are refused
  TimePoint shutting_down_until{};  // 503 with Retry-After 1
  bool says_retry_after = false;    // --shutdown-send-retry-after: 429 with Retry-After 5 instead
  TimePoint throttled_until{};      // 429 text/plain
  int throttle_retry_after = 1;     // seconds
  bool unauthorized = false;        // 401 for everything
  bool node_restriction = true;     // the admission plug-in
  bool disruption_controller = true;
  bool scheduler = true;
  bool workload_controllers = true;
  bool attach_detach = true;
  // A pod starts once its volumes are attached, as it really does. Off: the seeds of generated worlds keep their
  // course.
  bool pods_wait_for_volumes = false;
  bool garbage_collector = true;           // of Leases
  bool budget_writes_conflict = false;     // somebody rewrites every budget all the time
  std::set<std::string> stopped_kubelets;  // by node name
};

struct World {
  Store& store;
  Agenda& agenda;
  Rng& rng;
  Timing& timing;
  Switches& switches;

  TimePoint now() const { return agenda.clock().now(); }
  WallTime wall_now() const { return agenda.clock().wall_now(); }
};

}  // namespace haulout::sim
