#include "drain/budgets_feed.hpp"

#include <algorithm>

#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// How long to retry the list of budgets, because a server that has just started may refuse it. After that the drain
// continues without budgets, and sends evictions more carefully.
constexpr Duration list_patience = std::chrono::seconds(2);
// How long the drain relies on a view of budgets that is not connected.
constexpr Duration trusted_for = std::chrono::minutes(2);

// Returns true if the pipeline needs to know of the budget: it selects one of its pods, or has selected one.
bool concerns(const k8s::PodDisruptionBudget& budget, const Pipeline& pipeline) {
  const auto& pods = pipeline.pods();
  return pipeline.book().budgets().contains(budget.uid) ||
         std::any_of(pods.begin(), pods.end(), [&](const auto& entry) { return budget.selects(entry.second.pod); });
}

}  // namespace

asio::awaitable<void> BudgetsFeed::list() {
  if (session_.options().delete_instead_of_evict) co_return;
  auto budgets = co_await session_.insist<k8s::List<k8s::PodDisruptionBudget>>(
      "PodDisruptionBudgets could not be listed",
      [this](TimePoint limit) {
        return session_.client().list<k8s::PodDisruptionBudget>({.limit = k8s::usual_page}, limit);
      },
      std::nullopt, session_.now() + list_patience);
  if (budgets) {
    view().seed(*std::move(budgets));
  } else {
    forbidden_ = k8s::is_forbidden(budgets.error());
    pipeline_.set_budgets_visible(false);
  }
}

BudgetsFeed::View& BudgetsFeed::view() {
  if (view_) return *view_;
  k8s::ReflectorOptions options;
  options.page_size = session_.options().page_size;
  options.gather_until = [this] { return gathered_at(session_.now(), pipeline_.patience()); };
  view_ = std::make_unique<View>(
      session_.client(), session_.rng(), options,
      [this](const std::string& uid, const k8s::PodDisruptionBudget* budget) {
        if (!budget || concerns(*budget, pipeline_)) pipeline_.budget_changed(uid, budget, session_.now());
      },
      [this] {
        if (follows_) session_.changed().notify();
      });
  return *view_;
}

asio::awaitable<void> BudgetsFeed::follow() {
  follows_ = true;
  // If the budgets cannot be read, run_for_good() tries again after pauses of up to a minute. Meanwhile the drain
  // continues: each namespace is one lane, and refused evictions are retried from time to time.
  co_await view().run_for_good(std::chrono::minutes(1));
}

void BudgetsFeed::read_on() {
  if (view_) view_->read_on();
}

void BudgetsFeed::look(TaskGroup& group) {
  const bool seen = view_ && view_->health().synced;
  if (held_.due(seen && pipeline_.any_held_by_budget(), session_.now())) group.spawn(doubt());
}

asio::awaitable<void> BudgetsFeed::doubt() {
  static_cast<void>(co_await view_->look_again());
}

void BudgetsFeed::watch_health() {
  if (!view_) return;
  // A view that has been disconnected for long may show a budget as exhausted that allows disruptions again. So the
  // pipeline does not rely on it.
  const auto& health = view_->health();
  forbidden_ = !health.synced && (health.error ? k8s::is_forbidden(*health.error) : forbidden_);
  pipeline_.set_budgets_visible(health.synced &&
                                (health.connected || session_.now() < health.last_heard + trusted_for));
}

}  // namespace haulout::drain
