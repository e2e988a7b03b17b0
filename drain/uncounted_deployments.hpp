// Finds the Deployments that budgets of several controllers do not count because of a surge, and holds the other pods
// of these budgets meanwhile. No I/O.
//
// A pod is surged only while another pod of its Deployment has an owner. That one may go: the Deployment is scaled
// down, or rolled out. A budget with `maxUnavailable` or a percentage then counts the surged pod as healthy, but not
// the replicas of its Deployment, so it allows more disruptions of other pods than it should. This ends when the surged
// pod is replaced or given back, and the disruption controller has counted again.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "drain/controller_book.hpp"
#include "drain/guards.hpp"

namespace haulout::drain {

// Returns the name of a budget of the pod that also selects `other`, and that counts a pod without a controller as
// healthy but not as expected (counts_controllers()). Empty if there is none.
using BudgetOfBoth = std::function<std::string(const k8s::Pod&, const k8s::Pod& other)>;

class UncountedDeployments {
 public:
  // How long the disruption controller may take to write what it has counted. It counts at each change of a pod, within
  // a second as a rule.
  static constexpr Duration recount_limit = std::chrono::seconds(5);

  // Borrows `controllers`.
  UncountedDeployments(ControllerBook& controllers, BudgetOfBoth budget_of_both)
      : controllers_(controllers), budget_of_both_(std::move(budget_of_both)) {}

  // Take over the pods of the node that have a mark of a surge, and that are replaced or given back in time: first
  // begin_round(), then note() for each of them. Called after each change of pods.
  void begin_round();
  void note(const k8s::Pod& marked, TimePoint now);

  // Returns a hold if a budget of the pod does not count the Deployment of a marked pod.
  std::optional<EvictionGuard::Hold> held(const k8s::Pod& pod, TimePoint now) const;
  // Returns the next time after `now` at which held() can change without an event; max() if there is none.
  TimePoint next_due(TimePoint now) const;

 private:
  struct Marked {
    std::optional<k8s::Pod> pod{};  // unset: the node has no such pod any more
    TimePoint until{};              // budgets may not count its Deployment until then, although it counts again
  };

  ControllerBook& controllers_;
  BudgetOfBoth budget_of_both_;
  std::map<std::string, Marked> marked_;  // by UID
};

}  // namespace haulout::drain
