// The feed of PodDisruptionBudgets. Lists them for the plan, watches them during the eviction, and lists them again if
// pods have been parked because of them for long. A cluster may have thousands, so it keeps only those that select pods
// of the drain (BudgetScope). For a pod that comes late, and with other labels than all pods before, it lists them
// again. If they cannot be read, the drain continues, and the pipeline sends evictions more carefully (BudgetBook).
// Borrows session and pipeline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "drain/budget_scope.hpp"
#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class BudgetsFeed {
 public:
  BudgetsFeed(Session& session, Pipeline& pipeline);

  // Lists the budgets of these pods, and of all pods that the pipeline has already. If that fails, the pipeline
  // continues without them. Cancellable.
  boost::asio::awaitable<void> list_for(const std::vector<k8s::Pod>& pods);
  // Watches the budgets. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }
  // Processes the watch events that have arrived, without further delay.
  void read_on();
  // Starts to list the budgets again if those of a late pod are missing, or if pods have been parked because of them
  // for `doubt_interval`.
  void look(TaskGroup& group);
  // Sets how far the pipeline may rely on the view of the budgets.
  void watch_health();
  TimePoint next_wake() const;
  // Returns true if the right to read the budgets is missing, as far as the last answer tells.
  bool forbidden() const { return forbidden_; }

 private:
  using View = k8s::Reflector<k8s::PodDisruptionBudget>;
  View& view();
  BudgetScope& scope() { return pipeline_.book().scope(); }
  bool is_synced() const { return view_ && view_->health().synced; }
  // Returns true if budgets of a late pod are missing.
  bool lacks_some() const { return is_synced() && !pipeline_.book().scope().is_complete(); }
  boost::asio::awaitable<void> list();
  boost::asio::awaitable<void> list_again();

  Session& session_;
  Pipeline& pipeline_;
  std::unique_ptr<View> view_;  // the budgets in the scope; created by list() or follow()
  TimePoint list_at_{};         // when the budgets of a late pod may be listed
  HeldLong held_;               // times how long pods have been parked because of a budget
  SingleTask again_;            // list_again()
  bool follows_ = false;        // follow() was called, so there is a main loop to be woken
  bool forbidden_ = false;
};

}  // namespace haulout::drain
