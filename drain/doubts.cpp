// What the views say, asked of the server anew where they may have died unnoticed: whether the node is empty, which
// pods have gone, what the node is.
#include "drain/drain_impl.hpp"
#include "drain/text.hpp"
#include "k8s/resource_version.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

bool HeldLong::due(bool held, TimePoint now) {
  const bool held_before = next_ != TimePoint::max();
  if (held && held_before && now < next_) return false;
  next_ = held ? now + doubt_interval : TimePoint::max();
  return held && held_before;
}

// Empty in our view, for long enough since the cordon, with the view alive: then one most-recent list has the last
// word.
asio::awaitable<bool> Drain::Impl::verified_empty(TimePoint at) {
  if (!pipeline_->clear() || !volumes_clear() || reattaching()) {
    told_settling_ = false;
    co_return false;
  }
  const TimePoint settled = saturating_add(cordoned_at_, options_.settle);
  if (at < settled && !std::exchange(told_settling_, true)) emit(EventType::settling);
  const bool alive = pods_view_ && pods_view_->health().connected;
  if (at < settled || at < verify_not_before_ || !alive || !node_facts_.unschedulable) co_return false;
  const TimePoint asked = now(), cordoned = cordoned_at_;
  auto list = co_await client_.list_pods_on(node_name_, within(list_timeout));
  if (!list) {
    verify_not_before_ = now() + verify_backoff_.next(rng_, list.error().retry_after);
    co_return false;
  }
  pipeline_->reconcile(list->items, asked, now(), clock_.wall_now());
  if (!pipeline_->clear()) {
    changed_->notify();
    co_return false;
  }
  if (!co_await volumes_confirmed() || !co_await node_confirmed()) co_return false;
  // Pods may have come after the list, before a cordon that we hear of only now.
  if (cordoned_at_ != cordoned) {
    changed_->notify();
    co_return false;
  }
  // What the views learnt meanwhile counts as well.
  if (!pipeline_->clear() || now() >= deadline_) co_return false;
  const Progress progress = pipeline_->progress();
  const std::size_t volumes = volumes_.count(VolumeOutcome::detached);
  co_return !end(
      Outcome::drained,
      fmt::format("drained: {} gone, {} skipped{}", pods(progress.vanished), progress.skipped,
                  volumes == 0 ? "" : fmt::format(", {} volume{} detached", volumes, volumes == 1 ? "" : "s")));
}

Task<bool> Drain::Impl::read_node() {
  const std::size_t news = node_news_;
  auto node = co_await client_.get_node(node_name_, within(request_timeout));
  if (!node && !k8s::is_gone(node.error())) co_return std::move(node).error();
  const bool told = news != node_news_;
  // Gone, or made anew meanwhile.
  if (told && !node) co_return false;
  // What the view has told meanwhile may be newer: then that is how things stand.
  if (!told || !k8s::is_older(node->resource_version, node_.resource_version)) see_node(node ? &*node : nullptr);
  co_return true;
}

// The view of the Node may have died unnoticed: that it is still the same, and cordoned, is asked of the server.
asio::awaitable<bool> Drain::Impl::node_confirmed() {
  const auto read = co_await read_node();
  if (!read || !*read) {
    verify_not_before_ = now() + verify_backoff_.next(rng_, read ? std::nullopt : read.error().retry_after);
    co_return false;
  }
  const bool good = !node_facts_.gone && node_facts_.unschedulable;
  if (!good) changed_->notify();
  co_return good;
}

// A pod that comes to a node which takes none may mean that it takes them again, or is another one, and that our view
// of it has died unnoticed.
void Drain::Impl::doubt_node_for_late_pods(TaskGroup& group) {
  if (doubts_node_ || late_pods_ == late_pods_settled_) return;
  doubts_node_ = true;
  group.spawn(doubt_node());
}

asio::awaitable<void> Drain::Impl::doubt_node() {
  Backoff backoff(BackoffOptions{});
  Trouble trouble(*this, "whether node " + node_name_ + " still takes no pods could not be read");
  while (late_pods_ != late_pods_settled_) {
    const std::size_t late = late_pods_;
    const auto read = co_await read_node();
    if (read && *read) {
      late_pods_settled_ = late;
      continue;
    }
    if (!read) trouble.tell(read.error());
    co_await clock_.sleep_until(now() + backoff.next(rng_, read ? std::nullopt : read.error().retry_after));
  }
  trouble.over();
  doubts_node_ = false;
  changed_->notify();
}

// Beside the loop: a list that stalls must hold nothing up. Where the view of the pods has died, that of the Node may
// have, too, and what the list tells lets evictions go.
asio::awaitable<void> Drain::Impl::doubt_pods() {
  if (co_await read_node()) static_cast<void>(co_await pods_view_->look_again());
}

// What has held pods for long is asked for anew: where etcd was restored from a backup, a watch may wait for a revision
// that is hours away, or have lost what came before it. It would never tell that a budget has opened, that a
// replacement is Ready, or that the pod that waits has changed or gone.
void Drain::Impl::doubt_what_holds(TaskGroup& group) {
  const bool sees_budgets = budgets_view_ && budgets_view_->health().synced;
  if (pods_held_.due(pods_view_ && pipeline_->any_parked(), now())) group.spawn(doubt_pods());
  if (budgets_held_.due(sees_budgets && pipeline_->any_held_by_budget(), now())) group.spawn(doubt_budgets());
  if (guards_held_.due(!namespace_views_.empty() && pipeline_->any_held_by_guard(), now()))
    group.spawn(doubt_namespaces());
}

asio::awaitable<void> Drain::Impl::doubt_budgets() {
  static_cast<void>(co_await budgets_view_->look_again());
}

asio::awaitable<void> Drain::Impl::doubt_namespaces() {
  for (const std::string& ns : pipeline_->namespaces_held_by_guards()) {
    const auto view = namespace_views_.find(ns);
    if (view != namespace_views_.end() && view->second && view->second->health().synced)
      static_cast<void>(co_await view->second->look_again());
  }
}

}  // namespace haulout::drain
