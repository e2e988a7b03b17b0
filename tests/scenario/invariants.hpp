// The invariants of every simulated drain under any fault. They are checked at every step. Each message starts with
// the name of the promise (P1, P2, …) or of the rule that was broken.
//
// The checks compare the store of the cluster (the truth), the transport between drain and cluster (requests and
// answers), and the drain's observer (its claims). Each violation is recorded as a sentence and does not stop the run.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "drain/drain.hpp"
#include "drain/pipeline.hpp"
#include "drain/pod_filter.hpp"
#include "sim/call.hpp"
#include "tests/support/test_cluster.hpp"

namespace haulout::scenario {

// What the checks must know about the run in advance.
struct Circumstances {
  std::string node;
  drain::Options options;
  bool sound_wire = true;         // the connection has no faults, and the server does not restart
  Duration healed_after{};        // time from the start after which the connection has no faults in any case
  bool sound_kubelets = true;     // kubelets end all terminating pods
  bool sound_budgets = true;      // the disruption controller works all the time
  bool human_cordon = false;      // a person cordoned the node before the drain
  std::string webhook_ns{};       // namespace in which a webhook sometimes denies evictions
  bool human_uncordon = false;    // a person uncordons the node during the drain and cordons it again later
  bool roomy = false;             // other nodes state their capacity, and it is more than all pods need
  bool node_goes = false;         // the Node is deleted or replaced
  bool rights_change = false;     // some permissions are revoked for a while
  bool hopeless_answers = false;  // some answers say that a retry is useless
  bool as_kubelet = false;        // the credential may not read budgets, controllers or VolumeAttachments
  bool etcd_restored = false;     // etcd is restored from a backup, which undoes later writes
  Duration migrations_take{};     // time to migrate all pods that a webhook moves when their eviction is requested
};

class Invariants final : public http::Transport, public drain::DrainObserver {
 public:
  Invariants(sim::TestCluster& cluster, Clock& clock, Circumstances given);
  // The drain sends its requests through this object to `inner`. Borrows `inner`.
  void stand_before(http::Transport& inner) { inner_ = &inner; }

  void began();
  // Must be called at the same virtual time at which the drain returned.
  void ended(const drain::Report& report);
  // Must be called when pods were given back after a drain that was cancelled.
  void gave_back();
  void violated(std::string what);
  void note(const std::string& what);  // adds a line to the trace

  const std::vector<std::string>& violations() const { return violations_; }
  const std::vector<std::string>& trace() const { return trace_; }
  std::size_t requests() const { return requests_; }

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;
  void on_event(const drain::Event& event) override;

 private:
  // With `sound_wire`, a watch event reaches the drain within this time. The checks do not expect the drain to know a
  // change that is newer than this.
  static constexpr Duration news_takes = std::chrono::seconds(1);

  // One pod instance, identified by its UID. It is kept after the pod is deleted.
  struct Instance {
    std::string key;
    std::string node;
    TimePoint bound = TimePoint::max();
    std::optional<TimePoint> terminating, gone;
    TimePoint place_until = TimePoint::max();  // end of its grace period plus at most a minute
    unsigned in_flight = 0;
    bool signal = false;              // the drain announced its last request as a signal (event `signal_sent`)
    bool signal_refused = false;      // a signal was answered with 4xx
    bool shortening_refused = false;  // the last answer to such a request was a refusal
    bool shortened = false;           // the drain sent its own grace period while another one was running
    bool accepted = false;            // the drain received a success for its eviction
    TimePoint accepted_until{};       // if the pod is not terminating by then, the acceptance counts as lost
    bool refused_by_budget = false;   // the last answer to the drain was a refusal by a budget
    std::optional<TimePoint> first_sent, last_sent;
    std::size_t last_sent_as = 0;  // number of its last eviction request among all of the drain
    std::string controller;        // its UID
    bool adopted = false;          // it had no controller at first
    bool here_at_first = false;
    TimePoint restored_at{};  // when a restored backup brought it back last
    unsigned life = 0;        // number of times that a restored backup brought back an older state of it
    bool ready_at_first = false;
    std::optional<TimePoint> ready_since;
    bool taken_ready = false;  // it was Ready when its first eviction was sent
    k8s::Pod pod;              // as the drain decodes it; only for pods of the drained node
    // When it began to terminate although it had not finished. A restored backup does not undo that.
    std::optional<TimePoint> cut_off;
    bool had_finished = false;          // it had finished before it was terminating; only for pods of the drained node
    std::optional<TimePoint> finished;  // when `had_finished` became true
    // While it is surged: the number of Ready pods of its Deployment just before it was released, this one included.
    std::optional<std::int64_t> surged;
    std::optional<TimePoint> surged_since;  // when this drain released it, or when it was first seen surged
    // The same, and when its label was restored; the drain may not have heard of that yet.
    std::optional<std::pair<TimePoint, TimePoint>> surged_until;
    std::int64_t most_ready_before = 0;  // while it is surged: the most that ready_before_surges() has returned
    bool released = false;               // this drain has taken its label off at least once
    std::string hash;                    // the value of its label pod-template-hash before it was surged
    bool evicted_by_us = false;          // the server has accepted an eviction or deletion by the drain
    TimePoint first_seen = TimePoint::max();
    sim::Json labels;
    std::size_t patches = 0;                 // patches of it that the drain has sent
    bool was_ready = false;                  // it has been Ready at some time
    std::optional<TimePoint> unready_since;  // when it was last Ready
    sim::Object last_state;                  // before it was terminating; only for pods of the drained node
  };

  // invariants.cpp: checks at every step
  std::vector<k8s::PodDisruptionBudget> budgets() const;
  void see_answer(const sim::AuditEntry& entry);
  void before(const sim::Call& call);
  bool heard_of(TimePoint change) const;
  bool is_restored_unheard(const Instance& pod) const;
  bool was_ours(const Instance& pod) const;
  bool is_longer_than_asked(const Instance& pod) const;
  void before_eviction(const sim::Call& call, Instance& pod);
  void check_rate();
  void check_places();
  bool takes_place(const Instance& pod) const;
  void told_of_node(const sim::Json& node);
  void check_budget_lanes(const Instance& pod);
  // invariants_signals.cpp
  const k8s::PodDisruptionBudget* only_budget(const std::vector<k8s::PodDisruptionBudget>& all,
                                              const Instance& pod) const;
  void see_budget(const sim::Change& change);
  void check_signal(const Instance& pod);
  void after_signal(Instance& pod, const http::Response* answer);
  void check_asked();
  Instance* evicted_by(const sim::Call& call);
  void after_eviction(Instance& evicted, const http::Response* answer, bool success);
  void check_claim(const drain::Event& event);
  void check_pinned(const drain::Event& event);

  // invariants_store.cpp
  void see(const sim::Change& change);
  void see_again(Instance& pod) const;
  void see_ready(Instance& pod, const sim::Json& object);
  void see_node(const sim::Change& change);
  void see_node_written();

  // invariants_guards.cpp
  sim::Json workload_of(const Instance& pod) const;
  // With `perhaps`, also if it became the only replica so lately that the drain may not know it.
  bool is_only_replica(const Instance& pod, bool perhaps = false) const;
  bool waits_for_others(const Instance& pod) const;
  // The action that a rule or the label of Cluster API gives the pod; nullopt if none does. Implemented independently
  // of the drain's code, for the rules of seeded_options.cpp.
  struct Handling {
    drain::PodAction action = drain::PodAction::evict;
    std::optional<Duration> limit;
  };
  std::optional<Handling> handling(const k8s::Pod& pod) const;
  // How long the drain has run at most, by its own count. It reads the start from the mark of the cordon, which has
  // whole seconds.
  Duration draining_for() const { return clock_.now() - began_ + std::chrono::seconds(1); }
  // When the pod is evicted. 0: with most others; 1: as a member of a gang; 2: last, by a rule; 3: as a selected pod of
  // a DaemonSet; 4: as the drain's own pod.
  int stage_of(const Instance& pod) const;
  // True for a pod of a DaemonSet that the options of the drain select to be evicted.
  bool is_selected_daemon(const Instance& pod) const;
  bool is_in_place(const Instance& pod) const;
  void check_rule(const Instance& pod);
  // Implemented independently of the drain's code, as are the next two functions. Empty if the pod names no gang.
  static std::string gang_of(const k8s::Pod& pod);
  // True if another member on the node was cut off after this pod was bound, so that the gang does not run any more.
  bool is_in_broken_gang(const Instance& pod) const;
  void check_gangs(const Instance& pod);
  void check_gang_alone(const Instance& pod);
  // A pod with a smaller tier is evicted earlier. Compared in this order: the stage; the explicit order; the gang, in
  // stage 1; whether the pod is critical; its priority.
  using Tier = std::tuple<int, std::int64_t, std::string, bool, std::int32_t>;
  Tier tier_of(const Instance& pod) const;
  void check_order(const Instance& pod);
  void check_others_gone(const Instance& last);
  void check_controller(Instance& pod);
  void check_controller_budget(const Instance& pod, std::int64_t replicas);
  void check_canary(const Instance& pod);

  // invariants_surge.cpp
  struct Rollout {
    sim::Json spec;
    std::vector<std::pair<TimePoint, std::int64_t>> replicas;  // each number of replicas, and since when
    bool gone = false;
    std::optional<TimePoint> gone_since;
  };
  static bool is_pod_patch(const sim::Call& call);
  void check_pod_patch(const sim::Call& call);
  void check_give_back(const Instance& pod, const sim::Json& stored, const sim::Json& patch);
  void told_of_namespace(const std::string& name, const sim::Json& object);
  bool is_helpless() const;
  void see_rollout(const sim::Change& change);
  const Rollout* rollout_of(const Instance& pod) const;
  std::pair<std::int64_t, std::int64_t> replicas_known(const Rollout& rollout) const;
  std::int64_t others_ready(const Instance& pod, bool lately) const;
  std::int64_t ready_before_surges(const Instance& pod, Duration slack) const;
  void note_ready_before(const Instance& pod);
  bool is_surged_elsewhere(const Instance& pod) const;
  bool is_of_same_deployment(const Instance& one, const Instance& other) const;
  std::optional<std::string> wish_of(const sim::Json& pod) const;
  std::string exclusion(const sim::Json& pod, const Rollout* rollout) const;
  void see_surge(Instance& pod, const sim::Change& change);
  void check_release(const Instance& pod, const sim::Json& before, const sim::Json& mark);
  bool may_be_closed(const Instance& pod) const;
  bool has_shared_budget(const Instance& pod) const;
  void check_replaced(Instance& pod);
  bool is_owned(const Instance& pod) const;
  std::optional<std::int64_t> scale_of(const Instance& pod, std::string& whose);
  void check_budget_of_all(const Instance& evicted, const sim::Json& budget);
  bool has_replica_set(const Instance& pod) const;
  void check_nothing_surged(const std::string& outcome);

  // invariants_requests.cpp
  static bool writes_request(const sim::Call& call);
  void check_request(const sim::Call& call);
  void check_intent(const sim::Call& call, const sim::Json& body, const std::string& what);
  void check_withdrawn(const std::string& outcome);

  // invariants_volumes.cpp
  std::set<std::string> drivers_of(const Instance& pod) const;
  bool shares_with_one_that_stays(const Instance& pod) const;
  void check_turns(const Instance& pod);
  // Returns the names of all PersistentVolumes that are attached to the node.
  std::set<std::string> volumes_attached() const;
  // Returns when the last pod on the node that used the volume was deleted, if that was during the drain. Returns
  // nullopt if a pod still uses it or was left on purpose, or if no pod used it during the drain.
  std::optional<TimePoint> unused_since(const std::string& volume_name) const;
  void check_volumes();
  bool ended_by_volume() const;

  // invariants_end.cpp: checks after the end
  void end_drained(const drain::Report& report);
  void end_otherwise(const drain::Report& report);
  void end_failed(const drain::Report& report);
  bool selects_our_node(const std::string& uid) const;
  bool waits_for_grace_alone(const drain::Report& report) const;
  void end_refused(const drain::Report& report);
  void end_blocked(const drain::Report& report);
  void end_node_gone();
  void check_cordon(const drain::Report& report);
  void check_free_pods();
  void check_grace_periods();
  void check_request_totals();

  bool on_our_node(const Instance& pod) const { return pod.node == given_.node; }
  bool is_own(const Instance& pod) const { return pod.pod.uid == given_.options.own_pod_uid; }
  drain::Verdict verdict(const Instance& pod) const;
  bool may_look_managed(const Instance& pod) const;
  Duration since_start() const { return clock_.now() - began_; }

  sim::TestCluster& cluster_;
  Clock& clock_;
  Circumstances given_;
  http::Transport* inner_ = nullptr;
  std::map<std::string, Instance> pods_;
  std::map<std::string, drain::DaemonSetState> daemon_sets_;
  std::set<std::string> told_left_;            // UIDs of pods that the drain reports as left
  std::set<std::string> left_pinned_;          // subset of told_left_: left because their controller brings them back
  std::set<std::string> unknown_controllers_;  // as reported by the drain: "ReplicaSet shop/web-1"
  std::map<std::string, TimePoint> attached_since_;   // by UID of the VolumeAttachment
  std::map<std::string, TimePoint> detached_;         // by volume name: when it was last detached
  std::map<std::string, std::string> deployment_of_;  // UID of the ReplicaSet: UID of its Deployment
  std::map<std::string, Rollout> rollouts_;           // by UID of the Deployment
  // Annotation haulout.dev/surge of each namespace, as answers have told it to the drain: when, and which value.
  std::map<std::string, std::vector<std::pair<TimePoint, std::string>>> namespaces_told_;
  std::set<std::string> gangs_told_;          // gangs of which the drain has said that it breaks them
  std::set<std::string> patched_;             // UIDs of pods that the drain has patched
  std::vector<std::string> vain_give_backs_;  // violations if the drain ends as drained
  std::vector<std::string> violations_, trace_;
  // Terminating namespaces and those with a denying webhook. Other rules apply to their pods.
  std::set<std::string> touched_namespaces_;
  std::set<std::string> hindered_;               // UIDs of pods held by a budget or another protection at the start
  std::set<std::string> held_otherwise_;         // subset of hindered_: held by more than budgets
  std::map<std::string, TimePoint> closed_;      // by UID of the budget: when it was last exhausted; max while it is
  std::map<std::string, std::size_t> repeated_;  // by UID of the budget: signals beyond the first one for each pod
  std::deque<TimePoint> lately_;                 // requests within the last second
  std::size_t requests_ = 0;
  std::size_t evictions_sent_ = 0;
  std::map<std::string, std::size_t> reads_;  // number of reads, by single object
  std::size_t failures_ = 0;                  // requests, other than evictions, without a valid answer
  std::size_t throttled_ = 0;                 // evictions answered with 429, but not because of a budget
  std::size_t volume_refusals_ = 0;           // answers 403 about volumes and claims
  std::size_t pages_ = 0;                     // maximum number of pages of one list
  TimePoint loaded_ = clock_.now();           // when the objects of the world were loaded
  TimePoint began_{};
  // When the drain learned that the node is cordoned. Empty if its last read of the Node showed otherwise.
  std::optional<TimePoint> cordon_told_;
  std::optional<TimePoint> cordon_claimed_;  // when the drain reported the node as cordoned
  std::optional<TimePoint> last_list_;       // when the last list of the node's pods that succeeded was sent
  std::optional<TimePoint> unschedulable_since_;
  TimePoint schedulable_since_{};
  std::optional<TimePoint> drains_cordon_, persons_cordon_;  // start of the last cordon of each kind
  std::string node_uid_;                                     // from the drain's first read of the Node
  std::optional<TimePoint> node_gone_;
  // Time of the drain's newest data about the Node: when its last successful read was sent, or its last patch answered.
  std::optional<TimePoint> node_told_;
  bool cordoned_by_drain_ = false;
  bool wrote_ = false;  // a write took effect
  bool ever_refused_by_policy_ = false;
};

}  // namespace haulout::scenario
