// Checks of what the views show against the API server, in case a view has stopped without an error: whether the node
// is empty, which pods are deleted, and the state of the Node.
#include <fmt/format.h>

#include "drain/drain_impl.hpp"
#include "drain/reasons.hpp"
#include "drain/text.hpp"
#include "k8s/objects.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

bool HeldLong::due(bool held, TimePoint now) {
  const bool held_before = next_ != TimePoint::max();
  if (held && held_before && now < next_) return false;
  next_ = held ? now + doubt_interval : TimePoint::max();
  return held && held_before;
}

// Returns true if the node seems to be drained: in the views nothing is left to wait for, the cordon has been in force
// for the settle time, and the view of pods is live. A most-recent list then has to confirm it.
bool Drain::Impl::looks_over(TimePoint at) {
  if (!pipeline_->clear() || !volumes_clear() || reattaching()) {
    told_settling_ = false;
    return false;
  }
  const TimePoint settled = saturating_add(cordoned_at_, options_.settle);
  if (at < settled && !std::exchange(told_settling_, true)) emit(EventType::settling);
  const bool alive = pods_view_ && pods_view_->health().connected;
  return at >= settled && at >= verify_not_before_ && alive && node_facts_.unschedulable;
}

// Runs the check as a task beside the loop: a list that stalls must delay neither a late pod nor the deadline.
void Drain::Impl::look_at_end(TaskGroup& group) {
  const bool over = looks_over(now());
  if (proves_end_) return;
  if (unproved_ && (!pipeline_->clear() || !node_facts_.unschedulable)) proof_answered();
  if (!over && !volume_is_past_limit()) return;
  proves_end_ = true;
  if (over && !unproved_) unproved_.emplace(*this, now());
  group.spawn(prove_end());
}

asio::awaitable<void> Drain::Impl::prove_end() {
  if (!co_await ended_by_volume() && looks_over(now())) co_await prove_emptiness();
  proves_end_ = false;
  changed_->notify();
}

asio::awaitable<void> Drain::Impl::prove_emptiness() {
  if (!unproved_) unproved_.emplace(*this, now());
  const TimePoint asked = now(), cordoned = cordoned_at_;
  auto list = co_await client_.list_pods_on(node_name_, deadline_);
  if (!list) co_return not_proved(list.error(), "its pods could not be listed", "list on resource pods");
  pipeline_->reconcile(list->items, asked, now(), clock_.wall_now());
  if (!pipeline_->clear()) co_return proof_answered();
  if (!co_await volumes_confirmed()) co_return proof_answered();
  if (!co_await node_confirmed()) co_return;
  // The views may have changed meanwhile. For example, pods may have come after the list and before a new cordon that
  // was seen only now.
  if (ended_ || cordoned_at_ != cordoned || !pipeline_->clear() || now() >= deadline_) co_return;
  const Progress progress = pipeline_->progress();
  const std::size_t volumes = volumes_.count(VolumeOutcome::detached);
  end(Outcome::drained,
      fmt::format("drained: {} gone, {} skipped{}", pods(progress.vanished), progress.skipped,
                  volumes == 0 ? "" : fmt::format(", {} volume{} detached", volumes, volumes == 1 ? "" : "s")));
}

// Records that a request of the check failed. `right` is the permission to grant if the server forbids the request.
void Drain::Impl::not_proved(const Error& error, std::string_view what, std::string_view right) {
  verify_not_before_ = now() + verify_backoff_.next(rng_, error.retry_after);
  if (cut_off(error)) return;
  unproved_->why = fmt::format("{}: {}", what, error.message());
  if (k8s::is_forbidden(error)) unproved_->why += fmt::format("; grant verb {} (API group \"\")", right);
  unproved_->trouble.tell(unproved_->why);
}

// Ends the pending check, whatever its result is.
void Drain::Impl::proof_answered() {
  unproved_->trouble.over();
  unproved_.reset();
}

// When an unanswered or failing check becomes a diagnosis; max() if no check is pending.
TimePoint Drain::Impl::unproved_told_at() const {
  return unproved_ ? saturating_add(unproved_->since, worth_a_word) : TimePoint::max();
}

void Drain::Impl::diagnose_proof(TimePoint at, std::vector<DiagnosisFact>& facts) const {
  if (at < unproved_told_at()) return;
  facts.push_back({reason::emptiness_unproved,
                   "node " + node_name_,
                   fmt::format("no pod is left according to the watch, but the API server does not confirm it: {}; the "
                               "drain asks again until it does",
                               unproved_->why.empty() ? "it has not answered yet" : unproved_->why),
                   {}});
}

// Why the node did not count as drained at the deadline, although no pod that must leave was left.
std::string Drain::Impl::why_not_over() const {
  if (unproved_ && !unproved_->why.empty()) return ": " + unproved_->why;
  if (unproved_) return ": the API server has not answered";
  if (!node_facts_.unschedulable) return ": the node was uncordoned";
  if (pods_view_ && !pods_view_->health().connected && pods_view_->health().error)
    return ": its pods cannot be watched: " + pods_view_->health().error->message();
  if (now() < saturating_add(cordoned_at_, options_.settle)) return ": the settle time (--settle) was not over";
  return {};
}

Task<bool> Drain::Impl::read_node() {
  const std::size_t news = node_news_;
  auto node = co_await client_.get_node(node_name_, within(request_timeout));
  if (!node && !k8s::is_gone(node.error())) co_return std::move(node).error();
  const bool told = news != node_news_;
  // The server has no such Node, but a watch event came meanwhile: the Node was deleted, or created again.
  if (told && !node) co_return false;
  // A watch event that came meanwhile may be newer than the answer. Then its state stays valid.
  if (!told || !k8s::is_older(node->resource_version, node_.resource_version)) see_node(node ? &*node : nullptr);
  co_return true;
}

// The view of the Node may have stopped without an error. So the server is asked whether the Node is the same and still
// cordoned.
asio::awaitable<bool> Drain::Impl::node_confirmed() {
  const auto read = co_await read_node();
  if (!read) {
    not_proved(read.error(), "the Node could not be read", "get on resource nodes");
    co_return false;
  }
  proof_answered();
  if (!*read) verify_not_before_ = now() + verify_backoff_.next(rng_);
  co_return *read && !node_facts_.gone && node_facts_.unschedulable;
}

// A late pod on a cordoned node may mean that the Node is schedulable again or was replaced, and that the view of the
// Node has stopped without an error. So the Node is read.
void Drain::Impl::doubt_node_for_late_pods(TaskGroup& group) {
  if (doubts_node_ || late_pods_ == late_pods_settled_) return;
  doubts_node_ = true;
  group.spawn(doubt_node());
}

asio::awaitable<void> Drain::Impl::doubt_node() {
  Backoff backoff(BackoffOptions{});
  Trouble trouble(*this, "whether node " + node_name_ + " is still unschedulable could not be read");
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

// Runs beside the loop: a list that stalls must hold nothing up. If the view of the pods has stopped, the view of the
// Node may have, too. The Node is read first, because the list can lead to evictions.
asio::awaitable<void> Drain::Impl::doubt_pods() {
  if (co_await read_node()) static_cast<void>(co_await pods_view_->look_again());
}

// Lists again what has held pods for long. After etcd was restored from a backup, a watch may wait for a revision that
// is hours away, or have lost earlier events. It would then never report that a budget allows disruptions, that a
// replacement is Ready, or that the waiting pod has changed or was deleted.
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
