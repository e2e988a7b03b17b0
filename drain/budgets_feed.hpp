// The feed of the PodDisruptionBudgets of the cluster: listed for the plan, watched during the eviction, and listed
// again if they hold pods for long. It is optional: without it the pipeline tries pods more carefully. Borrows session
// and pipeline.
#pragma once

#include <memory>
#include <optional>

#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class BudgetsFeed {
 public:
  BudgetsFeed(Session& session, Pipeline& pipeline) : session_(session), pipeline_(pipeline) {}

  // Lists the budgets, or tells the pipeline that they cannot be seen. Cancellable.
  boost::asio::awaitable<void> list();
  // Follows the budgets until it is cancelled.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }
  // Reads the events that have arrived now.
  void read_on();
  // Lists them again if they have held pods for long.
  void look(TaskGroup& group);
  // Tells the pipeline whether it may rely on the view.
  void watch_health();
  TimePoint next_wake() const { return held_.next(); }

 private:
  boost::asio::awaitable<void> doubt();

  Session& session_;
  Pipeline& pipeline_;
  std::optional<k8s::List<k8s::PodDisruptionBudget>> listed_;
  std::unique_ptr<k8s::Reflector<k8s::PodDisruptionBudget>> view_;
  HeldLong held_;  // pods held by a budget
};

}  // namespace haulout::drain
