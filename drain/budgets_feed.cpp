#include "drain/budgets_feed.hpp"

#include <algorithm>
#include <functional>

#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// How long to retry the list of budgets, because a server that has just started may refuse it. After that the drain
// continues without budgets, and sends evictions more carefully.
constexpr Duration list_patience = std::chrono::seconds(2);
// How long the drain relies on a view of budgets that is not connected.
constexpr Duration trusted_for = std::chrono::minutes(2);

// The list of all budgets may be long. Pods that come late, one after the other, do not lead to more lists than one in
// this time.
constexpr Duration late_list_interval = std::chrono::seconds(5);

// Borrows the scope.
std::function<bool(const k8s::PodDisruptionBudget&)> within(const BudgetScope& scope) {
  return [&scope](const k8s::PodDisruptionBudget& budget) { return scope.has(budget); };
}

}  // namespace

BudgetsFeed::BudgetsFeed(Session& session, Pipeline& pipeline) : session_(session), pipeline_(pipeline) {
  // A deletion asks no budget, so none are read.
  if (!session_.options().delete_instead_of_evict) scope().known_for(0);
}

asio::awaitable<void> BudgetsFeed::list_for(const std::vector<k8s::Pod>& pods) {
  for (const k8s::Pod& pod : pods) scope().add(pod);
  return list();
}

asio::awaitable<void> BudgetsFeed::list() {
  if (session_.options().delete_instead_of_evict) co_return;
  const std::size_t size = scope().size();
  auto budgets = co_await session_.insist<k8s::List<k8s::PodDisruptionBudget>>(
      "PodDisruptionBudgets could not be listed",
      [this](TimePoint limit) {
        return session_.client().list<k8s::PodDisruptionBudget>({.limit = k8s::usual_page}, limit, k8s::longest_page,
                                                                within(scope()));
      },
      std::nullopt, session_.now() + list_patience);
  if (budgets) {
    view().seed(*std::move(budgets));
    scope().known_for(size);
  } else {
    forbidden_ = k8s::is_forbidden(budgets.error());
    pipeline_.book().set_visible(false);
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
        pipeline_.budget_changed(uid, budget, session_.now());
      },
      [this] {
        if (follows_) session_.changed().notify();
      });
  view_->keep_only(within(scope()));
  return *view_;
}

asio::awaitable<void> BudgetsFeed::follow() {
  follows_ = true;
  if (!is_synced()) scope().known_for(scope().size());  // the watch begins with a list
  // If the budgets cannot be read, run_for_good() tries again after pauses of up to a minute. Meanwhile the drain
  // continues: each namespace is one lane, and refused evictions are retried from time to time.
  co_await view().run_for_good(std::chrono::minutes(1));
}

void BudgetsFeed::read_on() {
  if (view_) view_->read_on();
}

void BudgetsFeed::look(TaskGroup& group) {
  const bool doubtful = held_.due(is_synced() && pipeline_.any_held_by_budget(), session_.now());
  const bool missing = lacks_some() && session_.now() >= list_at_;
  if ((doubtful || missing) && !again_.runs()) again_.start(group, list_again());
}

asio::awaitable<void> BudgetsFeed::list_again() {
  const std::size_t size = scope().size();
  const auto used = co_await view_->look_again();
  if (used && *used) scope().known_for(size);
  list_at_ = session_.now() + late_list_interval;
  session_.changed().notify();
}

TimePoint BudgetsFeed::next_wake() const {
  return lacks_some() && !again_.runs() ? std::min(held_.next(), list_at_) : held_.next();
}

void BudgetsFeed::watch_health() {
  if (!view_) return;
  // A view that has been disconnected for long may show a budget as exhausted that allows disruptions again. So the
  // pipeline does not rely on it.
  const auto& health = view_->health();
  forbidden_ = !health.synced && (health.error ? k8s::is_forbidden(*health.error) : forbidden_);
  pipeline_.book().set_visible(health.synced && (health.connected || session_.now() < health.last_heard + trusted_for));
}

}  // namespace haulout::drain
