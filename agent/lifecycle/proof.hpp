// Proves that a node is ready for its reboot: it holds the slot, the cordon is in force, no gate requires that the
// update is given up, and no pod that must leave is on the node. Uses most-recent reads. The agent repeats the proof
// right before the reboot. Cancellable. Borrows its arguments.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/lifecycle/permission.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

// Decides which pods on the cordoned node must leave it. Stores for one attempt the decisions about pods whose grounds
// cannot be read later.
class RemainingPods {
 public:
  explicit RemainingPods(const Context& context) : context_(context) {}

  // Begins an attempt, after a slot was taken.
  void begin_attempt() { returned_.clear(); }
  void begin_drain() { left_alone_.clear(); }
  // Called when the node is schedulable again: earlier observations do not apply to later pods.
  void node_is_schedulable();
  // Stores which pods a drain has skipped.
  void learn(const drain::Report& report);

  bool must_leave(const k8s::Pod& pod);

 private:
  // Returns true if the pod's controller has created pods on this cordoned node twice. Adds the controller to the
  // record.
  bool comes_back(const k8s::Pod& pod);

  const Context& context_;
  // UIDs of skipped pods. They stay on the node even if they change later.
  std::set<std::string> left_alone_;
  // UIDs of the pods that were created on the node while it was cordoned and empty. The key is the controller, as in
  // `Record::pinned`.
  std::map<std::string, std::set<std::string>> returned_;
};

class Proof {
 public:
  Proof(const Context& context, GateWatch& gates, RemainingPods& pods)
      : context_(context), gates_(gates), pods_(pods) {}

  // Returns nothing if nothing prevents the reboot; otherwise the decision that prevents it. Fails if at least one
  // check had no answer and no other check prevents the reboot. Also fails if the Node was deleted or replaced; then
  // Activity::must_reload() is true.
  Task<std::optional<Decision>> prove();

 private:
  Task<std::optional<Decision>> doubt_slot();
  Task<std::optional<Decision>> doubt_cordon();
  Task<std::optional<Decision>> doubt_gates();
  Task<std::optional<Decision>> doubt_emptiness();

  const Context& context_;
  GateWatch& gates_;
  RemainingPods& pods_;
};

}  // namespace haulout::agent
