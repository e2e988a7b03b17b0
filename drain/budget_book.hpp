// What we know of PodDisruptionBudgets, and what we have in flight against each. Pure bookkeeping.
//
// Two eviction requests in flight for one budget cost the server half a second per conflict (measured), so each budget
// is a lane with one request at a time, while as many pods vanish as it allows. Without the right to see budgets each
// namespace is such a lane. A request that is sent although the budget is seen to be closed (signals.hpp) is beside
// the lane: it makes nothing wait.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "k8s/objects.hpp"

namespace haulout::drain {

class BudgetBook {
 public:
  // False: budgets may not be listed, or the view of them is dead; lanes are namespaces and every gate is open.
  void set_visible(bool visible) { visible_ = visible; }
  bool visible() const { return visible_; }

  struct Update {
    std::string ns;          // whose pods may be affected
    bool selection_changed;  // other pods than before may be selected, not only other counts shown
    bool edited;             // its owner has changed what it wants
  };
  // nullptr: the budget is gone.
  Update update(const std::string& uid, const k8s::PodDisruptionBudget* budget);
  const std::map<std::string, k8s::PodDisruptionBudget>& budgets() const { return budgets_; }

  // UIDs of the budgets that select the pod.
  std::vector<std::string> selecting(const k8s::Pod& pod) const;

  // The same, kept by the book as long as it lives, once for all pods that share it: comparing two is comparing
  // pointers. Never null.
  using Selection = const std::vector<std::string>*;
  Selection selection(const k8s::Pod& pod) { return &*selections_.insert(selecting(pod)).first; }

  // The server deletes such a pod before it looks at any budget, and at how many there are.
  static bool ignores_budgets(const k8s::Pod& pod);

  // The server's own exemptions: such a pod it deletes whatever the budget says, and takes no disruption for it.
  static bool exempt(const k8s::Pod& pod, const k8s::PodDisruptionBudget& budget);

  enum class Gate {
    open,    // an eviction may be sent
    busy,    // the lane has a request in flight
    closed,  // the budget is seen to allow no disruption of this pod
  };
  Gate gate(const k8s::Pod& pod, const std::vector<std::string>& budgets) const;
  // Returns the lanes that are busy with it now, to be handed back with the answer.
  std::vector<std::string> sent(const k8s::Pod& pod, const std::vector<std::string>& budgets);
  void answered(const k8s::Pod& pod, const std::vector<std::string>& lanes, bool accepted);
  // Likewise for a request that is only a signal to this budget.
  void signalled(const k8s::Pod& pod, const std::string& budget);
  void signal_answered(const k8s::Pod& pod, const std::string& budget, bool accepted);

  // What holds a pod that these budgets select, as the end of "pod … is"; empty when nothing does.
  std::string explain(const std::vector<std::string>& budgets) const;

 private:
  bool visible_ = true;
  std::map<std::string, k8s::PodDisruptionBudget> budgets_;
  std::set<std::vector<std::string>> selections_;
  // Pods whose eviction was accepted since the budget was last seen to change: its count does not know them yet.
  std::map<std::string, std::set<std::string>> granted_;
  struct Lane {
    std::string pod;  // name
    bool counted;     // takes no disruption, or the budget's count knows it already
  };
  using Lanes = std::map<std::string, Lane>;
  void count(const k8s::Pod& pod, const std::string& budget, const Lanes::node_type& lane, bool accepted);

  Lanes busy_lanes_;  // with a request in flight
  Lanes signals_;     // by budget
};

}  // namespace haulout::drain
