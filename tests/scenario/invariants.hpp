// What must hold in every simulated drain, whatever befalls it, checked at every step and named after its promise.
//
// Sees three things: the store of the cluster (what is), the way between drain and cluster (what the drain asks and
// what it is told), and the drain's observer (what it claims). A violation is a sentence; none stops the run.
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
#include "sim/cluster.hpp"

namespace haulout::scenario {

// What the checks need to know of the run beforehand.
struct Circumstances {
  std::string node;
  drain::Options options;
  bool sound_wire = true;         // no fault on the way, no restart of the server
  Duration healed_after{};        // of the start: from then on it is sound anyway
  bool sound_kubelets = true;     // pods that were told to end do so
  bool human_cordon = false;      // the node was cordoned before
  std::string webhook_ns{};       // whose evictions a webhook stands in the way of, now and then
  bool human_uncordon = false;    // somebody uncordons it meanwhile, and cordons it again later
  bool roomy = false;             // there is more room on other nodes than all pods need, and they say so
  bool node_goes = false;         // the Node is deleted or replaced
  bool rights_change = false;     // some are taken away for a while
  bool hopeless_answers = false;  // the wire says now and then that asking again is in vain
  bool as_kubelet = false;        // its credential sees neither budgets nor controllers nor VolumeAttachments
  bool etcd_restored = false;     // from a backup: what was done since is undone
  Duration migrations_take{};     // of pods that go because a webhook has seen that they are asked for
};

class Invariants final : public http::Transport, public drain::DrainObserver {
 public:
  Invariants(sim::Cluster& cluster, Clock& clock, Circumstances given);
  // The drain talks through this to `inner`.
  void stand_before(http::Transport& inner) { inner_ = &inner; }

  void began();
  // At the very instant at which the drain returned.
  void ended(const drain::Report& report);
  void violated(std::string what);
  void note(const std::string& what);  // a line of the trace

  const std::vector<std::string>& violations() const { return violations_; }
  const std::vector<std::string>& trace() const { return trace_; }
  std::size_t requests() const { return requests_; }

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;
  void on_event(const drain::Event& event) override;

 private:
  // What the drain cannot know yet on a sound wire: a change on its way to the watch.
  static constexpr Duration news_takes = std::chrono::seconds(1);

  // One pod instance, by UID; kept when it has gone.
  struct Instance {
    std::string key;
    std::string node;
    TimePoint bound = TimePoint::max();
    std::optional<TimePoint> terminating, gone;
    TimePoint place_until = TimePoint::max();  // the end of its grace period plus a minute
    unsigned in_flight = 0;
    bool signal = false;             // the last that the drain sent is only a signal, as it says
    bool signal_refused = false;     // one was answered, and the pod stays
    bool shortened = false;          // the drain has asked for its own grace period when somebody else's was running
    bool accepted = false;           // the drain was told that its eviction is accepted
    TimePoint accepted_until{};      // when that counts as lost, unless the pod terminates
    bool refused_by_budget = false;  // the last that it was told of it
    std::optional<TimePoint> first_sent, last_sent;
    std::string controller;  // UID
    bool here_at_first = false;
    unsigned life = 0;  // one more whenever a backup has brought an older state of it
    bool ready_at_first = false;
    std::optional<TimePoint> ready_since;
    bool taken_ready = false;   // when its eviction was first sent
    k8s::Pod pod;               // as the drain would decode it; of our node only
    bool had_finished = false;  // before anybody deleted it; of our node only
  };

  // invariants.cpp: at every step
  std::vector<k8s::PodDisruptionBudget> budgets() const;
  void see_answer(const sim::AuditEntry& entry);
  void before(const sim::Call& call);
  bool heard_of(TimePoint change) const;
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
  bool is_only_replica(const Instance& pod) const;
  bool waits_for_others(const Instance& pod) const;
  // In which order pods leave: the own pod last, then explicit order, critical, priority.
  using Tier = std::tuple<bool, std::int64_t, bool, std::int32_t>;
  Tier tier_of(const Instance& pod) const;
  void check_order(const Instance& pod);
  void check_others_gone(const Instance& own);
  void check_controller(Instance& pod);
  void check_controller_budget(const Instance& pod, std::int64_t replicas);
  void check_canary(const Instance& pod);

  // invariants_volumes.cpp
  std::set<std::string> drivers_of(const Instance& pod) const;
  bool shares_with_one_that_stays(const Instance& pod) const;
  void check_turns(const Instance& pod);
  // Attached though nobody on the node uses them now: since their last pod has gone, which left during the drain.
  std::set<std::string> volumes_attached() const;
  // When the last of its pods here has gone; nullopt: used, or never was.
  std::optional<TimePoint> unused_since(const std::string& volume_name) const;
  void check_volumes();
  bool ended_by_volume() const;

  // invariants_end.cpp: when it is over
  void end_drained(const drain::Report& report);
  void end_otherwise(const drain::Report& report);
  void end_failed(const drain::Report& report);
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

  sim::Cluster& cluster_;
  Clock& clock_;
  Circumstances given_;
  http::Transport* inner_ = nullptr;
  std::map<std::string, Instance> pods_;
  std::map<std::string, drain::DaemonSetState> daemon_sets_;
  std::set<std::string> told_left_;                  // UIDs of pods that the drain says it leaves
  std::set<std::string> left_pinned_;                // of them, those that come back whatever is done
  std::set<std::string> unknown_controllers_;        // as the drain has told: "ReplicaSet shop/web-1"
  std::map<std::string, TimePoint> attached_since_;  // by UID of the VolumeAttachment
  std::map<std::string, TimePoint> detached_;        // by volume: the last time
  std::vector<std::string> violations_, trace_;
  // Terminating, or with a webhook in the way: their pods follow other rules.
  std::set<std::string> touched_namespaces_;
  std::set<std::string> hindered_;               // UIDs of pods that a budget or a protection ever concerned
  std::set<std::string> held_otherwise_;         // of them, those that not only a budget concerned
  std::map<std::string, TimePoint> closed_;      // by UID of the budget: when it was last seen to allow nothing
  std::map<std::string, std::size_t> repeated_;  // by UID of the budget: signals for pods that had had one
  std::deque<TimePoint> lately_;                 // requests of the last second
  std::size_t requests_ = 0;
  std::map<std::string, std::size_t> reads_;  // of each object that was read by itself
  std::size_t failures_ = 0;                  // requests without the answer that they asked for, and streams that broke
  std::size_t throttled_ = 0;                 // evictions that the server had no time for
  std::size_t volume_refusals_ = 0;           // 403 about volumes and claims
  std::size_t pages_ = 0;                     // of a list, at most
  TimePoint began_{};
  std::optional<TimePoint>
      cordon_told_;  // when the drain was told that the node is cordoned, if that is the last it was told
  std::optional<TimePoint> cordon_claimed_;  // the drain says that the node is cordoned
  std::optional<TimePoint> last_list_;       // of pods: when the last that was answered left the drain
  std::optional<TimePoint> unschedulable_since_;
  TimePoint schedulable_since_{};
  std::optional<TimePoint> drains_cordon_, persons_cordon_;  // when the last of each began
  std::string node_uid_;                                     // as the drain was first told it
  std::optional<TimePoint> node_gone_;
  std::optional<TimePoint> node_told_;  // when the last request left the drain whose answer showed it the Node
  bool cordoned_by_drain_ = false;
  bool wrote_ = false;  // a write took effect
  bool ever_refused_by_policy_ = false;
};

}  // namespace haulout::scenario
