// The feed of PodDisruptionBudgets. Lists them for the plan, watches them during the eviction, and lists them again if
// pods have been parked because of them for long. Passes to the pipeline those that select its pods: a cluster may have
// thousands. If they cannot be read, the drain continues, and the pipeline sends evictions more carefully (BudgetBook).
// Borrows session and pipeline.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class BudgetsFeed {
 public:
  BudgetsFeed(Session& session, Pipeline& pipeline) : session_(session), pipeline_(pipeline) {}

  // Lists the budgets. If that fails, the pipeline continues without them. Cancellable.
  boost::asio::awaitable<void> list();
  // Watches the budgets. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }
  // Returns all budgets of the cluster that are known, by UID. It is nullptr after close(), and until list() has
  // succeeded or follow() was called.
  const std::map<std::string, k8s::PodDisruptionBudget>* all() const { return view_ ? &view_->objects() : nullptr; }
  // Processes the watch events that have arrived, without further delay.
  void read_on();
  // Starts to list the budgets again if pods have been parked because of them for `doubt_interval`.
  void look(TaskGroup& group);
  // Sets whether the pipeline may rely on the view of the budgets.
  void watch_health();
  TimePoint next_wake() const { return held_.next(); }
  // Returns true if the right to read the budgets is missing, as far as the last answer tells.
  bool forbidden() const { return forbidden_; }

 private:
  using View = k8s::Reflector<k8s::PodDisruptionBudget>;
  View& view();
  boost::asio::awaitable<void> doubt();

  Session& session_;
  Pipeline& pipeline_;
  std::unique_ptr<View> view_;  // all budgets; created by list() or follow()
  HeldLong held_;               // times how long pods have been parked because of a budget
  bool follows_ = false;        // follow() was called, so there is a main loop to be woken
  bool forbidden_ = false;
};

}  // namespace haulout::drain
