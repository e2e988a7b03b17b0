// The proof that a node is ready for its reboot: the slot is held, the cordon is in force, no gate gives the update up,
// and no pod that must leave is on the node. Most-recent reads establish it. The agent repeats it right before the
// reboot. Cancellable. Borrows what it is given.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/lifecycle/gate_watch.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

// Decides which pods that are on the cordoned node must leave it. Remembers for one attempt what was decided about
// pods and cannot be seen later.
class RemainingPods {
 public:
  explicit RemainingPods(const Context& context) : context_(context) {}

  // A slot was taken: an attempt begins.
  void begin_attempt() { returned_.clear(); }
  void begin_drain() { left_alone_.clear(); }
  // The node takes pods again: what came before says nothing about later pods.
  void node_is_schedulable();
  // Takes over which pods a drain has skipped.
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

  // Returns nothing if nothing prevents the reboot, or the decision that prevents it. An error means that at least one
  // question stays unanswered, and that no other answer prevents the reboot. If the Node was deleted or replaced, it is
  // an error, too, and Activity::must_reload() is true.
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
