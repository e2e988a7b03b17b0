// Records the PodDisruptionBudgets and the drain's eviction requests that are in flight, and decides whether an
// eviction may be sent now as far as budgets are concerned. No I/O.
//
// Two eviction requests in flight for the same budget cost the server half a second per conflict (measured). So each
// budget is a lane with one request in flight at a time; as many pods may be terminating as the budget allows. If the
// drain has no current view of the budgets, or not yet of those of a pod that came late, the namespace of the pod is a
// lane.
// A signal, an eviction request that is sent although the budget is exhausted (Signals in eviction_pacing.hpp), uses no
// lane, so no other request waits for it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "drain/budget_scope.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

class BudgetBook {
 public:
  BudgetBook() = default;
  // It can be moved, but not copied, because it has pointers to its own members.
  BudgetBook(BudgetBook&&) = default;
  BudgetBook& operator=(BudgetBook&&) = default;

  // False if budgets may not be listed or their view is not live. Then each namespace is a lane, and a gate is never
  // `closed`.
  void set_visible(bool visible) { visible_ = visible; }
  bool visible() const { return visible_; }
  // The pods of which the book needs all budgets. selection() adds its pod.
  BudgetScope& scope() { return scope_; }
  // Returns true if the book has all budgets that select pods of its scope.
  bool complete() const { return visible_ && scope_.is_complete(); }

  struct Update {
    std::string ns;          // namespace whose pods may be affected
    bool selection_changed;  // the budget may select other pods than before; false if only its counts changed
    bool edited;             // the budget is new or deleted, or its spec was changed
  };
  // `budget` is nullptr if the budget was deleted.
  Update update(const std::string& uid, const k8s::PodDisruptionBudget* budget);
  const std::map<std::string, k8s::PodDisruptionBudget>& budgets() const { return budgets_; }

  // Returns the UIDs of the budgets that select the pod.
  std::vector<std::string> selecting(const k8s::Pod& pod) const;

  // The result of selecting(), stored once for all pods with the same selection, so that two selections can be compared
  // by pointer. Never null. The pointer stays valid as long as the book exists.
  using Selection = const std::vector<std::string>*;
  Selection selection(const k8s::Pod& pod);

  // Returns true if the server deletes the pod without checking any budget, even if several budgets select it.
  static bool ignores_budgets(const k8s::Pod& pod);

  // Returns true if the server deletes the pod and counts no disruption: ignores_budgets() is true; or the pod is not
  // Ready, and the budget has enough healthy pods or always allows the eviction of unhealthy ones.
  static bool exempt(const k8s::Pod& pod, const k8s::PodDisruptionBudget& budget);

  enum class Gate {
    open,    // an eviction may be sent
    busy,    // a request is in flight in the lane
    closed,  // as far as is known, the budget allows no disruption of this pod
  };
  Gate gate(const k8s::Pod& pod, const std::vector<std::string>& budgets) const;
  // The same, without a search among all budgets: the pipeline asks for each pod that is due, after every event.
  Gate gate(const k8s::Pod& pod, Selection budgets) const;
  // Records that an eviction was sent. Returns the lanes that it makes busy; the caller passes them to answered().
  std::vector<std::string> sent(const k8s::Pod& pod, const std::vector<std::string>& budgets);
  void answered(const k8s::Pod& pod, const std::vector<std::string>& lanes, bool accepted);
  // Record that a signal was sent for this budget, and that it was answered.
  void signalled(const k8s::Pod& pod, const std::string& budget);
  void signal_answered(const k8s::Pod& pod, const std::string& budget, bool accepted);

  // Returns why a pod that these budgets select cannot be evicted: "blocked by PodDisruptionBudget shop/web: …", or
  // "several PodDisruptionBudgets select this pod …". Empty if `budgets` is empty or its only budget is not known.
  std::string explain(const std::vector<std::string>& budgets) const;

 private:
  const k8s::PodDisruptionBudget* find(const std::vector<std::string>& budgets) const;
  Gate gate(const k8s::Pod& pod, const std::vector<std::string>& budgets, const k8s::PodDisruptionBudget* only) const;

  bool visible_ = true;
  std::map<std::string, k8s::PodDisruptionBudget> budgets_;
  std::set<std::vector<std::string>> selections_;
  std::unordered_map<Selection, const k8s::PodDisruptionBudget*> only_;  // the budget of each selection of a single one
  // UIDs of pods whose eviction was accepted since the last change of the budget, by UID of the budget. Its
  // `disruptionsAllowed` does not count them yet.
  std::map<std::string, std::set<std::string>> granted_;
  struct Lane {
    std::string pod;  // name of the pod whose request is in flight
    bool counted;     // the eviction uses no disruption, or the budget's status already counts it
  };
  using Lanes = std::map<std::string, Lane>;
  void count(const k8s::Pod& pod, const std::string& budget, const Lanes::node_type& lane, bool accepted);

  bool has_all_budgets_of(const k8s::Pod& pod) const { return visible_ && scope_.knows(pod); }
  bool is_namespace_busy(const std::string& ns) const;

  BudgetScope scope_;
  Lanes busy_lanes_;  // with a request in flight, by UID of the budget or "ns:" and the namespace
  Lanes signals_;     // in flight, by UID of the budget
};

}  // namespace haulout::drain
