// The invariants of every simulated fleet, whatever happens to it. They are checked at every step against the server's
// true state, and named after the promise that they test. A violation adds a sentence to `violations` and does not stop
// the run. No I/O. Borrows the cluster, the clock and the policy.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/fleet/machine.hpp"

namespace haulout::fleet {

// How late a condition of an agent may be while the agent runs and the API server answers. An agent withdraws the
// condition Drained with its next request. Everything else it writes after a second at the latest. The rest of this
// time is for requests in flight, for conflicts with other writers, and for pods that are bound during a write.
inline constexpr Duration conditions_late_at_most = std::chrono::seconds(30);

class FleetChecks final : public MachineObserver {
 public:
  using Limit = std::function<std::size_t(std::size_t nodes)>;
  FleetChecks(sim::TestCluster& cluster, Clock& clock, const drain::Policy& policy, Limit limit);

  // Runs an action of a person. Meanwhile the checks permit what only a person may do, for example to free a slot.
  void by_a_person(const std::function<void()>& action);
  void violated(std::string what);

  std::vector<std::string> violations;
  // Node and state, in the order in which the nodes showed them.
  std::vector<std::pair<std::string, std::string>> states;
  std::size_t evictions = 0, reboots = 0;
  // Maximum number of times that the agents of one machine may take it down within 24 hours without a person's request;
  // 0 disables the check.
  std::size_t reboots_per_day = 0;
  std::map<std::string, std::string> pools;  // pool of each node; nodes that are missing here are in the pool "default"
  std::map<std::string, std::size_t> limits;  // limits of pools that have a limit of their own
  bool leaves_pinned_pods = false;            // if true, pods may stay whose app has come back twice since the cordon
  bool remembers_versions = false;  // if true, agents must not install a version that has failed on another node
  // The sizes of the waves in which agents roll a version out, like "1,2,20%"; empty: no waves.
  std::string ramp;
  std::size_t halt_after = 0;          // number of failed nodes at which agents halt a roll-out; 0: no such number
  std::string roll_out_order = "any";  // the order in which agents roll a version out
  bool surges = false;                 // if true, agents may patch pods of their own nodes (`--surge`)
  bool asks = false;                   // if true, they may create and patch EvictionRequests (`--eviction-requests`)
  // How long a condition of an agent may be untrue. The default is for agents whose watch is silent (view_is_old), and
  // whose writes are refused.
  Duration conditions_late = std::chrono::minutes(30);
  bool leaves_cordoned_nodes_alone = false;  // if true, agents must not touch nodes that a person has cordoned

  void life_began(Machine& machine) override;
  void before_request(Machine& machine, const sim::Call& call) override;
  void after_request(Machine& machine, const sim::Call& call, TimePoint sent, const http::Response* answer) override;
  void reboot_asked(Machine& machine, const std::string& method) override;
  void going_down(Machine& machine, bool by_agent) override;
  void ready_shown(Machine& machine) override;
  void installation_began(Machine& machine) override;

  bool cordoned_by_a_person(const std::string& node) const { return nodes_.at(node).by_a_person; }

 private:
  // An annotation for autoscalers as it was last seen.
  struct AutoscalerTruth {
    std::string value;
    bool ours = false;     // an agent has set it
    bool refused = false;  // a person has removed it from under an agent, whose hold lasts
  };
  // A condition of one of the agents' types as it was last seen; the strings are empty if the Node does not have it.
  struct ConditionTruth {
    std::string text;  // as JSON
    std::string status;
    bool ours = false;
    std::optional<TimePoint> untrue_since{};
  };
  struct NodeTruth {
    std::string state;
    std::map<std::string_view, ConditionTruth> conditions;  // by type
    bool recorded = false;
    bool unschedulable = false;
    std::map<std::string, AutoscalerTruth, std::less<>> autoscalers;  // by annotation
    std::optional<TimePoint> tainted_since, tainted_last;             // when the Node had the taint readiness_taint
    bool taint_is_old = false;                        // it may have had the taint when this attempt began
    bool by_a_person = false;                         // true if a person has cordoned the node
    bool workplace = false;                           // cordoned by a person before this drain began, and ever since
    std::optional<TimePoint> out_since;               // since when the node has been not Ready or unschedulable
    std::optional<TimePoint> cordon_lost, turn_lost;  // since when the cordon or the slot is missing
    std::set<std::string> turns;                      // Leases that name this Node with its UID
    // The version to which the update leads that began last; empty: none, or not known.
    std::string version;
    // The machine was rebooted by others during that update. The agent does not say to which version this has led.
    bool rebooted_by_others = false;
    bool turn_was_due = false;  // since the node got its slot, `max-unavailable` has allowed it at some moment
    bool wave_was_due = false;  // and so have the wave and the halt of its roll-out
    std::string not_due;        // why they have not
    std::optional<TimePoint> turn_since{};      // since when it has its slot
    std::optional<TimePoint> recorded_since{};  // since when the Node has a record
    // For the order of a roll-out: since when the node has waited for nothing but a slot, or another node's turn.
    std::optional<TimePoint> in_line_since{};
    std::optional<WallTime> needed_since{};  // since when it needs an update, by its record
    std::string zone, rank;                  // values of the labels
    Duration left_free{};                    // for how long a slot was free while it has been waiting
    bool may_be_passed_over = false;         // while it has been in the line, a slot was free for long
    TimePoint drained_last{};                // last time at which the node was shown as draining
    // Counts since the node was cordoned, by namespace/app. `came`: pods that were bound to the node. `sent_away`:
    // evictions of such pods, in one attempt and by one life of the agent.
    std::map<std::string, std::size_t> came, sent_away;
    std::set<std::string> evicted_daemons;  // UIDs of the DaemonSets of which pods were evicted in this attempt
    std::string uid;
    Machine* machine = nullptr;
  };
  struct PodTruth {
    std::string key, node;
    TimePoint bound = TimePoint::max();
    bool had_finished = false;  // the pod had finished before it was deleted
    bool came_back = false;     // the pod was bound while the node was cordoned
    bool of_job_set = false;
  };
  // When the present agent sent its last successful read of each kind.
  struct Proof {
    std::optional<TimePoint> turn, node, pods;
  };

  void see(const sim::Change& change);
  void see_node(const sim::Change& change);
  void see_autoscalers(const std::string& name, NodeTruth& node, const sim::Json& object);
  void see_taints(NodeTruth& node, const sim::Json& object);
  void check_waiting_taint(const std::string& name, const sim::Json& before, const sim::Json& object);
  void see_conditions(const std::string& name, NodeTruth& node, const sim::Json& object);
  void check_conditions();
  // Returns why the condition is not true, or an empty text.
  std::string untrue(const std::string& name, const NodeTruth& node, std::string_view type) const;
  void check_readiness(const std::string& name, NodeTruth& node, const std::string& before, const std::string& state);
  void see_versions(const std::string& name, const std::string& record);
  void see_state(const std::string& name, NodeTruth& node, const std::string& state);
  void see_waves(const std::string& name, NodeTruth& node, const std::string& before, const std::string& state);
  void look_whose_wave_may_be();
  std::string refused_by_wave(const std::string& name, const std::string& version) const;
  void see_line(NodeTruth& node, const sim::Json& object);
  void see_free_slots();
  bool goes_before(const NodeTruth& one, const NodeTruth& other) const;
  void check_order(const std::string& name, const NodeTruth& node);
  void check_version(const Machine& machine, const std::string& version, const std::string& what);
  void check_installation(const std::string& name, const NodeTruth& node, const std::string& before,
                          const std::string& state);
  void see_lease(const sim::Change& change);
  void see_pod(const sim::Change& change);
  void see_answer(const sim::AuditEntry& entry);
  void check_budgets(const sim::Json& pod);
  void check_eviction(const sim::AuditEntry& entry);
  void check_proof(const Machine& machine, const std::string& what);
  void look_whose_turn_may_be();
  std::string pool_of(const std::string& node) const;
  void check_workplace(const std::string& name, const std::string& what);
  bool must_leave(const sim::Json& pod) const;
  bool is_daemon_without_time(const sim::Json& pod) const;
  void check_rate(const Machine& machine);

  sim::TestCluster& cluster_;
  Clock& clock_;
  const drain::Policy& policy_;  // the policy that agents get when they start
  Limit limit_;
  bool person_acts_ = false;
  std::map<std::string, NodeTruth> nodes_;
  std::map<std::string, PodTruth> pods_;                              // by UID of the pod
  std::map<std::string, std::pair<std::string, std::string>> turns_;  // Lease to the holder's node and UID
  std::map<std::string, Proof> proofs_;                               // by name of the node
  std::map<std::string, std::deque<TimePoint>> lately_;  // times of the requests of the last ten seconds, by node
  // Times within 24 hours at which its agent took the machine down without a person's request, by UID of the Node.
  std::map<std::string, std::deque<TimePoint>> downs_;
  // By namespace/app: the last time at which a pod was lost other than by an eviction or the budget changed, or else
  // the time at which the first pod was added.
  std::map<std::string, TimePoint> disturbed_;
  std::set<std::string> evicted_;  // UIDs of evicted pods
  // The state that the present agent last sent to its Node, and when it sent it first; by name of the Node.
  std::map<std::string, std::pair<std::string, TimePoint>> decided_;
  // Since when the record of a Node names a version as failed; by name of the Node, then by version.
  std::map<std::string, std::map<std::string, TimePoint>> failed_;
  // By version: the nodes that may have come back well with it. True: certainly. False: it was not updated to it, or
  // its Node was deleted, it has failed or it was updated again since.
  std::map<std::string, std::map<std::string, bool>> came_back_;
  // By version: the nodes that have failed with it. True: certainly. False: it may have run well since.
  std::map<std::string, std::map<std::string, bool>> failed_with_;
  std::map<std::string, std::optional<TimePoint>> free_since_;  // by pool: if a slot is free, the time of the last look
};

}  // namespace haulout::fleet
