// What must hold in every simulated fleet, whatever befalls it, checked at every step against the server's own truth
// and named after its promise. A violation is a sentence; none stops the run.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/fleet/machine.hpp"

namespace haulout::fleet {

class FleetChecks final : public MachineObserver {
 public:
  using Limit = std::function<std::size_t(std::size_t nodes)>;
  FleetChecks(sim::Cluster& cluster, Clock& clock, const drain::Policy& policy, Limit limit);

  // What people do, who may do what agents may not.
  void by_a_person(const std::function<void()>& action);
  void violated(std::string what);

  std::vector<std::string> violations;
  // Node and state, in the order in which they were shown.
  std::vector<std::pair<std::string, std::string>> states;
  std::size_t evictions = 0, reboots = 0;
  // How often the agents of one machine may take it down within 24 hours without a person's request; 0: not looked at.
  std::size_t reboots_per_day = 0;
  std::map<std::string, std::string> pools;   // of a node; of those that are not here it is "default"
  std::map<std::string, std::size_t> limits;  // of pools whose limit is their own
  bool leaves_pinned_pods = false;            // those whose like have come twice since the node was cordoned
  bool leaves_cordoned_nodes_alone = false;   // those that a person has cordoned

  void life_began(Machine& machine) override;
  void before_request(Machine& machine, const sim::Call& call) override;
  void after_request(Machine& machine, const sim::Call& call, TimePoint sent, const http::Response* answer) override;
  void reboot_asked(Machine& machine, const std::string& method) override;
  void going_down(Machine& machine, bool by_agent) override;
  void ready_shown(Machine& machine) override;

  bool cordoned_by_a_person(const std::string& node) const { return nodes_.at(node).by_a_person; }

 private:
  struct NodeTruth {
    std::string state;
    bool recorded = false;
    bool unschedulable = false;
    bool by_a_person = false;                         // who made it so
    bool workplace = false;                           // it was so when this drain began, and has been since
    std::optional<TimePoint> out_since;               // not Ready, or unschedulable
    std::optional<TimePoint> cordon_lost, turn_lost;  // since when
    std::set<std::string> turns;                      // Leases that name this very Node
    bool turn_was_due = false;                        // there was a moment since it took one at which it might
    TimePoint drained_last{};                         // when it was last shown as draining
    // Since it was cordoned, by namespace/app: pods that were bound to it; evictions of such pods, in one attempt and
    // by one life of the agent.
    std::map<std::string, std::size_t> came, sent_away;
    std::string uid;
    Machine* machine = nullptr;
  };
  struct PodTruth {
    std::string key, node;
    TimePoint bound = TimePoint::max();
    bool had_finished = false;  // before anybody deleted it
    bool came_back = false;     // it was bound to a cordoned node
  };
  // When the last successful read of each kind of the agent that lives left it.
  struct Proof {
    std::optional<TimePoint> turn, node, pods;
  };

  void see(const sim::Change& change);
  void see_node(const sim::Change& change);
  void see_state(const std::string& name, NodeTruth& node, const std::string& state);
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
  void check_rate(const Machine& machine);

  sim::Cluster& cluster_;
  Clock& clock_;
  const drain::Policy& policy_;  // of the agents, as they are told when they start
  Limit limit_;
  bool person_acts_ = false;
  std::map<std::string, NodeTruth> nodes_;
  std::map<std::string, PodTruth> pods_;                              // by UID
  std::map<std::string, std::pair<std::string, std::string>> turns_;  // Lease: holder's node, UID
  std::map<std::string, Proof> proofs_;                               // by node
  std::map<std::string, std::deque<TimePoint>> lately_;               // requests of ten seconds
  std::map<std::string, std::deque<TimePoint>> downs_;  // by UID of the Node: by its agent, unasked, within 24 hours
  std::map<std::string, TimePoint> disturbed_;          // namespace/app: by something else than an eviction
  std::set<std::string> evicted_;                       // UIDs
};

}  // namespace haulout::fleet
