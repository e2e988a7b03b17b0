// Proves that a node is ready for its reboot: it holds the slot, the cordon is in force, no gate requires that the
// update is given up, no pod that must leave is on the node, and the kubelet does not report another boot id than the
// agent reads. Uses most-recent reads. The agent calls it in three states: in `updating` before the installation; in
// `ready` at first and after each change of the node, its pods or its slot; in `rebooting` before each request.
// Cancellable. Borrows its arguments.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/lifecycle/permission.hpp"
#include "drain/pod_filter.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

// Decides which pods on the cordoned node must leave it. A pod that was once skipped stays skipped in this drain,
// because its earlier state cannot be read later. Also changes Record::pinned, and writes a Warning Event for a
// controller whose pods return again and again.
class RemainingPods {
 public:
  explicit RemainingPods(const Context& context) : context_(context) {}

  // Begins an attempt, after a slot was taken.
  void begin_attempt() { returned_.clear(); }
  void begin_drain() { left_alone_.clear(); }
  // Called when the node is schedulable again: earlier observations do not apply to later pods.
  void node_is_schedulable();
  // Stores the pods that a drain has skipped (except those skipped by labels), and in the record the controllers whose
  // pods return again and again.
  void learn(const drain::Report& report);

  bool must_leave(const k8s::Pod& pod);
  // Runs as a child of an activity: watches the node's pods, and calls `found` for each pod that must leave. Calls
  // `unseen` when the server has refused the first list of the pods, so that a pod may have come which the agent has
  // not seen; then tries again after a pause. A watch that has begun goes on by itself. Ends only by cancellation.
  // `Learns::no`: a pod that comes does not count as one that comes back, because the node may be schedulable.
  enum class Learns { yes, no };
  boost::asio::awaitable<void> follow(Learns learns, std::function<void()> found, std::function<void()> unseen);

 private:
  drain::Decision decide(const k8s::Pod& pod) const;
  // --pinned=leave: pods that come back again and again stay.
  bool pinned_pods_stay() const;
  // Returns true if an earlier decision was to leave the pod on the node.
  bool was_left(const k8s::Pod& pod) const;
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

  // Returns nothing if nothing prevents the reboot; otherwise the decision that prevents it. In the first case the
  // conditions know of the proof (Conditions::prove()). Fails if at least one check had no answer and no other check
  // prevents the reboot. If the Node was deleted or replaced, the result is an error or a decision, and
  // Activity::must_reload() is true afterwards.
  Task<std::optional<Decision>> prove();
  // Returns true if the last proof failed because the server of the slots did not confirm the slot (Turn::uncertain).
  bool slot_uncertain() const { return slot_uncertain_; }

 private:
  Task<std::optional<Decision>> doubt_slot();
  Task<std::optional<Decision>> doubt_cordon();
  Task<std::optional<Decision>> doubt_gates();
  Task<std::optional<Decision>> doubt_emptiness();

  const Context& context_;
  GateWatch& gates_;
  RemainingPods& pods_;
  bool slot_uncertain_ = false;
};

}  // namespace haulout::agent
