// State that all parts of the simulated cluster share: the storage, the agenda (planned steps), the delays (Timing) and
// the switches that change the behaviour of the parts (Switches). Cluster owns it; every part borrows it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"
#include "sim/store.hpp"

namespace haulout::sim {

// The agenda of the simulated cluster: planned steps, ordered by (time, order of insertion), and the one coroutine that
// runs them. All parts of the cluster are plain functions that add their next step to the agenda. Therefore a
// simulation depends only on its inputs.
class Agenda {
 public:
  Agenda(boost::asio::any_io_executor executor, Clock& clock);

  void at(TimePoint when, std::function<void()> step);
  void after(Duration delay, std::function<void()> step) { at(saturating_add(clock_.now(), delay), std::move(step)); }
  // Runs each step at its time, until cancelled.
  boost::asio::awaitable<void> run();

  Clock& clock() const { return clock_; }

 private:
  Clock& clock_;
  Notifier changed_;
  TimePoint waiting_until_ = TimePoint::min();
  std::uint64_t next_sequence_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> steps_;
};

// A caller of the simulated API server. The server identifies a caller by its bearer token, like a pod by the token of
// its ServiceAccount. Requests without a token, or with an unknown one, come from Switches::user. The user of a
// kubelet, "system:node:<name>", may do what sim/access.hpp allows. All others may do everything that is not in
// Switches::forbidden.
struct Identity {
  std::string username;
  std::string uid;
  std::vector<std::string> groups;
  // Values from a token that is bound to a pod; empty for other tokens.
  std::string node_name;
  std::string node_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string credential_id{};
};

// Maps a token to the identity of its caller. The value is unset for a token that is no longer valid.
using Tokens = std::map<std::string, std::optional<Identity>>;

// Every delay of the simulated world. The defaults are those of an idle cluster. Annotations of a pod may override them
// for this pod:
//   sim.haulout.dev/starts-after: 5s       time from binding to Ready
//   sim.haulout.dev/never-ready: "true"    the pod runs, but never becomes Ready
//   sim.haulout.dev/terminates-after: 2s   time from the request to stop to the final delete, at most the grace period
//   sim.haulout.dev/never-terminates: "true"
//   sim.haulout.dev/prefers-node: n1       the scheduler chooses this node if the pod fits there
// A PodDisruptionBudget may state the total number of replicas of its pods' controllers, which then need not exist:
//   sim.haulout.dev/expects-pods: "3"
struct Timing {
  Duration api_latency = std::chrono::milliseconds(2);         // round trip of a request, without processing
  Duration api_latency_jitter = std::chrono::milliseconds(3);  // upper bound of a uniform random addition to it
  Duration watch_latency = std::chrono::milliseconds(1);       // time from a change to the arrival of its watch event
  Duration watch_latency_jitter = std::chrono::milliseconds(1);
  // Time between an eviction's read and write of a budget. A write by another eviction in between causes a conflict.
  Duration budget_write = std::chrono::milliseconds(1);
  // Pause of the server before it retries an eviction after a conflict. The real server tries 20 times.
  Duration conflict_pause = std::chrono::milliseconds(500);
  Duration controller_lag = std::chrono::milliseconds(50);  // reaction time of the workload controllers
  Duration scheduler_lag = std::chrono::milliseconds(100);  // time from choosing a pod's node to binding the pod
  Duration pod_start = std::chrono::seconds(1);
  double termination = 1.0;                      // part of its grace period that a pod takes to stop
  Duration termination_limit = Duration::max();  // longest time that a pod takes to stop
  // A kubelet reports the ends of pods one after another; one report takes this long.
  Duration kubelet_report{};
  Duration disruption_lag = std::chrono::milliseconds(20);
  // Time after which the disruption controller stops counting an eviction that has led to no deletion. The value is the
  // real controller's.
  Duration disruption_timeout = std::chrono::minutes(2);
  Duration taint_lag = std::chrono::milliseconds(11);
  // Time from the deletionTimestamp of a namespace to the deletion of its objects.
  Duration namespace_lag = std::chrono::milliseconds(200);
  // Time from the deletion of a Node to the removal of its pods.
  Duration pod_gc_lag = std::chrono::seconds(40);
  // Delays until a Lease whose owners do not exist is removed. Each has a random addition of up to its jitter. `gc_…`
  // counts from the deletion of an owner, `dead_owner_…` from a write of a Lease with owners that do not exist.
  Duration gc_lag = std::chrono::milliseconds(15);
  Duration gc_jitter = std::chrono::milliseconds(115);
  Duration dead_owner_lag = std::chrono::milliseconds(14);
  Duration dead_owner_jitter = std::chrono::milliseconds(26);
  Duration attach = std::chrono::seconds(1);  // time that a driver needs to attach a volume
  // Time from the end of the last pod that uses a volume on a node to the request to detach it.
  Duration unmount = std::chrono::milliseconds(500);
  Duration detach = std::chrono::seconds(2);
  // Pause before the next try to attach a volume while another node has it.
  Duration attach_retry = std::chrono::seconds(5);
  // Time after which a volume is detached from a node with a stopped kubelet. The value is the real controller's.
  Duration force_detach = std::chrono::minutes(6);
  Duration event_ttl = std::chrono::hours(1);
  Duration bookmark_every = std::chrono::seconds(60);
  std::chrono::seconds watch_default{1800};
};

// Behaviours of the simulated cluster that its owner may change while the cluster runs.
struct Switches {
  std::string user = "haulout";  // user of requests without a token, or with an unknown one
  Tokens tokens;
  std::set<std::string>
      forbidden;              // requests to which the server responds with 403: "create pods/eviction", "watch pods", …
  TimePoint refused_until{};  // until this time the server refuses connections
  TimePoint shutting_down_until{};  // until this time the server responds with 503 and Retry-After 1
  // True: until `shutting_down_until` the server responds with 429 and Retry-After 5 instead of 503, as with
  // --shutdown-send-retry-after.
  bool says_retry_after = false;
  TimePoint throttled_until{};   // until this time the server responds with 429 as text/plain
  int throttle_retry_after = 1;  // value of Retry-After in the 429, in seconds
  bool unauthorized = false;     // the server responds with 401 to every request
  bool node_restriction = true;  // the admission plug-in NodeRestriction is on
  bool disruption_controller = true;
  bool scheduler = true;
  bool workload_controllers = true;
  bool attach_detach = true;
  // A pod starts only after its volumes are attached, as in a real cluster. Off by default, because the tests with
  // random worlds expect the events that their seeds give without it.
  bool pods_wait_for_volumes = false;
  // The API server serves EvictionRequests (lifecycle.k8s.io/v1alpha1), and a controller acts on them
  // (eviction_requests.hpp). Kubernetes 1.37 has the API, which is off, and no controller.
  bool eviction_requests = false;
  bool eviction_request_controller = true;
  // ResourceQuotas refuse pods that the workload controllers create. Off by default: rehearsals do not play quotas.
  bool quotas = false;
  bool garbage_collector = true;           // the OwnerGarbageCollector works
  bool budget_writes_conflict = false;     // every write of a budget by an eviction fails with a conflict
  std::set<std::string> stopped_kubelets;  // names of nodes whose kubelets do nothing
};

// What every part of the simulated cluster works with. It borrows everything.
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
