// From the first eviction to the outcome: the loop wakes on events and decides on the current state.
#include <fmt/format.h>
#include <set>

#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "drain/text.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// While many pods are left, events trigger look_around() at most this often. Nothing urgent depends on it.
constexpr Duration glance = std::chrono::milliseconds(200);

}  // namespace

asio::awaitable<bool> Drain::Impl::evict(bool own_time) {
  if (own_time) start_time();
  if (options_.dry_run != DryRunMode::none) co_return co_await dry_run();
  changed_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  pipeline_->start(now());
  if (plan_holds() || co_await look_again()) {
    // Raises diagnoses for what the plan could not find out, before the loop acts.
    update_diagnoses(now());
    co_await with_task_group([this](TaskGroup& group) { return loop(group); });
  }
  pods_view_.reset();
  budgets_view_.reset();
  node_view_.reset();
  volumes_view_.reset();
  namespace_views_.clear();
  co_await restore_cordon();
  emit(EventType::finished, nullptr, nullptr, report_.message);
  co_return report_.outcome == Outcome::drained;
}

// With several nodes and guards that count pods, the plan never holds: the guards must also count pods that left the
// other nodes a moment ago.
bool Drain::Impl::plan_holds() const {
  if (options_.drained_together.size() > 1 && options_.guards.follows_pods()) return false;
  return now() < saturating_add(planned_at_, plan_keeps);
}

// Makes the plan again. Other nodes were drained since it was made: pods may have been deleted, recreated under the
// same names, or protected. Returns false if the drain has ended.
asio::awaitable<bool> Drain::Impl::look_again() {
  const std::string no_node = "node " + node_name_ + " could not be read";
  auto node = co_await insist<k8s::Node>(
      no_node, [this](TimePoint limit) { return client_.get_node(node_name_, limit); }, request_timeout);
  if (!node && k8s::is_gone(node.error())) {
    see_node(nullptr);
    co_return true;
  }
  if (!node) co_return give_up(node.error(), no_node);
  see_node(&*node);
  const TimePoint asked = now();
  const std::string no_pods = "the pods of node " + node_name_ + " could not be listed";
  auto pods = co_await insist<k8s::List<k8s::Pod>>(
      no_pods, [this](TimePoint limit) { return client_.list_pods_on(node_name_, limit); });
  if (!pods) co_return give_up(pods.error(), no_pods);
  listed_namespaces_.clear();
  controllers_.forget_pods();
  std::set<std::string> gone;
  for (const auto& [uid, tracked] : pipeline_->pods()) gone.insert(uid);
  for (const k8s::Pod& pod : pods->items) gone.erase(pod.uid);
  for (const std::string& uid : gone) pipeline_->pod_gone(uid, now(), clock_.wall_now());
  co_await list_budgets();
  if (!co_await look_up_controllers(pods->items, true)) co_return false;
  for (const k8s::Pod& pod : pods->items) pipeline_->pod_listed(pod, asked, now());
  pods_meta_ = pods->meta;
  listed_pods_ = std::move(pods->items);
  // These lists come before the loop: a pod that the loop parks because they are missing counts as tried, and does not
  // keep the next tier closed any more.
  co_return co_await list_controlled_pods() && co_await list_volumes();
}

asio::awaitable<void> Drain::Impl::loop(TaskGroup& group) {
  group.spawn(follow_pods());
  if (!options_.delete_instead_of_evict) group.spawn(follow_budgets());
  group.spawn(follow_node());
  TimePoint looked_at{};
  TimePoint look_at{};
  while (!ended_) {
    if (now() >= look_at || !pipeline_->unhurried()) pipeline_->time_passed(now());
    watch_health();
    take_turns();
    doubt_node_for_late_pods(group);
    if (!doubts_node_)
      for (const k8s::Pod& pod : pipeline_->take_evictions(now())) group.spawn(evict_one(pod.uid, pod.ns, pod.name));
    if (now() >= look_at || pipeline_->few_left()) {
      look_around(group);
      if (ended_) co_return;
      looked_at = now();
      look_at = next_wake(looked_at);
    }
    hurry_views();
    const TimePoint wake = pipeline_->unhurried() ? look_at : std::min(look_at, pipeline_->next_wake(now()));
    const bool news = co_await changed_->wait_until(clock_, wake);
    if (news) look_at = std::min(look_at, looked_at + glance);
  }
}

void Drain::Impl::look_around(TaskGroup& group) {
  if (now() >= doubt_not_before_ && pipeline_->any_in_doubt()) {
    doubt_not_before_ = now() + doubt_interval;
    group.spawn(doubt_pods());
  }
  doubt_what_holds(group);
  look_at_volumes(group);
  look_at_controllers(group);
  inquiries_.look(*pipeline_, now(), client_.server_now());
  if (!inquires_ && inquiries_.due(now())) {
    inquires_ = true;
    group.spawn(inquire());
  }
  update_diagnoses(now());
  conclude(now());
  if (!ended_) look_at_end(group);
}

// Rounded up to a multiple of `patience`, so that all views read at the same moment.
TimePoint Drain::Impl::gathered_at(Duration patience) const {
  const TimePoint at = now();
  return patience > Duration::zero() ? at - at.time_since_epoch() % patience + patience : at;
}

// A response may have made watch events urgent that the views still leave unread.
void Drain::Impl::hurry_views() {
  const Duration patience = pipeline_->patience();
  const Duration before = std::exchange(patience_, patience);
  // With zero patience this always calls read_on(): a view may have begun to wait since the last call. On a view that
  // does not wait, read_on() has no effect.
  if (patience > Duration::zero() && patience >= before) return;
  if (pods_view_) pods_view_->read_on();
  if (budgets_view_) budgets_view_->read_on();
}

void Drain::Impl::conclude(TimePoint at) {
  if (node_facts_.gone) {
    end(Outcome::node_gone, "the Node was deleted, or replaced by another of the same name, during the drain");
  } else if (pipeline_->hopeless()) {
    std::string first;
    for (const PodReport& pod : pipeline_->reports())
      if (pod.outcome == PodOutcome::waiting && first.empty())
        first = fmt::format("pod {}: {}", pod.key(), pod.message);
    end(Outcome::failed, "the server rejects the remaining evictions: " + first);
  } else if (at >= deadline_) {
    const Progress progress = pipeline_->progress();
    const std::size_t left = progress.to_evict - progress.vanished;
    end(Outcome::blocked,
        left == 0 ? volumes_clear()
                        ? "the deadline passed before the API server confirmed that no pod is left" + why_not_over()
                        : "the deadline passed before all volumes were detached: " + volumes_.waiting_for()
                  : fmt::format("the deadline passed with {} left", pods(left)));
  }
}

// The earliest time at which policy skips a terminating pod as overdue (`skip_terminating_after`). No watch event
// reports that.
TimePoint Drain::Impl::overdue_at(TimePoint at) const {
  TimePoint next = TimePoint::max();
  if (!options_.policy.skip_terminating_after) return next;
  const WallTime wall = client_.server_now();
  for (const TrackedPod* tracked : pipeline_->leaving()) {
    if (tracked->state != PodState::terminating || !tracked->pod.deletion_timestamp) continue;
    const Duration left = *options_.policy.skip_terminating_after - Duration(wall - *tracked->pod.deletion_timestamp);
    // `left` is negative if the wall clock has passed that time after policy was applied.
    next = std::min(next, saturating_add(at, std::max(left, Duration::zero()) + overdue_margin));
  }
  return next;
}

TimePoint Drain::Impl::next_wake(TimePoint at) const {
  TimePoint next =
      std::min({deadline_, at + look_interval, overdue_at(at), pipeline_->next_wake(at), board_.next_due(at),
                volumes_.next_wake(at), inquiries_.next_wake(at), controllers_.next_due(at)});
  if (pipeline_->clear()) {
    const TimePoint settled = std::max(saturating_add(cordoned_at_, options_.settle), verify_not_before_);
    if (settled > at) next = std::min(next, settled);
  }
  for (const TimePoint told : {unproved_told_at(), saturating_add(disconnected_since_, worth_a_word)})
    if (told > at) next = std::min(next, told);
  if (const TimePoint due = questions_.next_due(); due > at) next = std::min(next, due);
  if (const TimePoint doubt = doubt_volumes_at(); doubt > at) next = std::min(next, doubt);
  if (doubt_not_before_ > at && pipeline_->any_in_doubt()) next = std::min(next, doubt_not_before_);
  return std::min({next, pods_held_.next(), budgets_held_.next(), guards_held_.next()});
}

asio::awaitable<void> Drain::Impl::evict_one(std::string uid, std::string ns, std::string name) {
  const Result<> answer = co_await request_removal(uid, ns, name);
  pipeline_->answered(uid, answer, now(), clock_.wall_now());
  changed_->notify();
}

asio::awaitable<void> Drain::Impl::follow_pods() {
  k8s::ReflectorOptions options;
  options.field_selector = "spec.nodeName=" + node_name_;
  options.page_size = options_.page_size;
  options.gather_until = [this] { return gathered_at(pipeline_->patience()); };
  pods_view_ = std::make_unique<k8s::Reflector<k8s::Pod>>(
      client_, rng_, options,
      [this](const std::string& uid, const k8s::Pod* pod) {
        const auto asked = pods_view_->list_asked();
        if (!pod && asked)
          pipeline_->pod_missing(uid, *asked, now(), clock_.wall_now());
        else if (!pod)
          pipeline_->pod_gone(uid, now(), clock_.wall_now());
        else if (asked)
          pipeline_->pod_listed(*pod, *asked, now());
        else
          pipeline_->pod_changed(*pod, now());
      },
      [this] {
        // The view does not report the deletion of pods that the drain knows only from other lists. So the whole list
        // is compared.
        if (const auto asked = pods_view_->list_asked())
          pipeline_->only_listed(pods_view_->objects(), *asked, now(), clock_.wall_now());
        changed_->notify();
      });
  pods_view_->seed({pods_meta_, std::exchange(listed_pods_, {})});
  // The view was seeded with a list, so run() ends only by cancellation.
  static_cast<void>(co_await pods_view_->run());
}

asio::awaitable<void> Drain::Impl::follow_budgets() {
  k8s::ReflectorOptions options;
  options.page_size = options_.page_size;
  options.gather_until = [this] { return gathered_at(pipeline_->patience()); };
  budgets_view_ = std::make_unique<k8s::Reflector<k8s::PodDisruptionBudget>>(
      client_, rng_, options,
      [this](const std::string& uid, const k8s::PodDisruptionBudget* budget) {
        pipeline_->budget_changed(uid, budget, now());
      },
      [this] { changed_->notify(); });
  if (listed_budgets_) budgets_view_->seed(*std::exchange(listed_budgets_, std::nullopt));
  // The view of budgets is optional. Without it each namespace is one lane, and refused evictions are retried from time
  // to time.
  co_await budgets_view_->run_for_good(std::chrono::minutes(1));
}

asio::awaitable<void> Drain::Impl::follow_node() {
  k8s::ReflectorOptions options;
  options.field_selector = "metadata.name=" + node_name_;
  node_view_ = std::make_unique<k8s::Reflector<k8s::Node>>(
      client_, rng_, options,
      [this](const std::string& uid, const k8s::Node* node) {
        ++node_news_;
        if (node || uid == node_.uid) see_node(node);
      },
      [this] {
        const auto& error = node_view_->health().error;
        node_list_forbidden_ = node_view_->health().polling && error && k8s::is_forbidden(*error);
        changed_->notify();
      });
  node_view_->seed({{node_.resource_version, {}}, {node_}});
  co_await with_task_group([this](TaskGroup& group) {
    auto run = [](k8s::Reflector<k8s::Node>& view) -> asio::awaitable<void> { (void)co_await view.run(); };
    group.spawn(run(*node_view_));
    return poll_node();
  });
}

// If the drain may get the Node but not list or watch it (`kubectl drain` needs no more), it reads the Node about every
// 5 s.
asio::awaitable<void> Drain::Impl::poll_node() {
  for (;;) {
    co_await clock_.sleep_until(now() + rng_.between(std::chrono::seconds(4), std::chrono::seconds(6)));
    if (!node_list_forbidden_) continue;
    (void)co_await read_node();
    changed_->notify();
  }
}

void Drain::Impl::see_node(const k8s::Node* node) {
  if (!node || node->uid != node_.uid) {
    node_facts_.gone = true;
    pipeline_->set_paused(true, now());
    return;
  }
  const bool took_pods_unseen = is_another_cordon(node_, *node);
  // Pods may have been bound while the node was schedulable and not be visible yet. So the settle time starts again.
  if (took_pods_unseen || (node->unschedulable && !node_facts_.unschedulable)) {
    cordoned_at_ = now();
    told_settling_ = false;
  }
  if (took_pods_unseen) pipeline_->cordoned_anew(now());
  node_ = *node;
  node_facts_.unschedulable = node->unschedulable;
  node_facts_.unschedulable_manager = node->unschedulable_manager;
  node_facts_.ready = node->ready;
  pipeline_->set_paused(!node_facts_.unschedulable, now());
  show_cordon(*node);
}

void Drain::Impl::watch_health() {
  if (budgets_view_) {
    // A view that has been disconnected for long would show a budget as exhausted that allows disruptions again.
    const auto& budgets = budgets_view_->health();
    pipeline_->set_budgets_visible(budgets.synced && (budgets.connected || now() < budgets.last_heard + trusted_for));
  }
  if (!pods_view_) return;
  const auto& health = pods_view_->health();
  node_facts_.pods_error = health.error;
  // A watch that is reopened at once has missed nothing: load balancers close idle connections.
  const bool lost = !health.connected && health.error.has_value();
  disconnected_since_ = lost ? std::min(disconnected_since_, now()) : TimePoint::max();
  const bool disconnected = lost && now() >= disconnected_since_ + worth_a_word;
  if (disconnected == told_disconnected_) return;
  told_disconnected_ = disconnected;
  emit(disconnected ? EventType::disconnected : EventType::reconnected, nullptr, nullptr,
       disconnected ? health.error->message() : std::string());
}

void Drain::Impl::update_diagnoses(TimePoint at) {
  // The server's clock is known only to a second or two. A smaller change of the offset is ignored, so that it changes
  // no diagnosis.
  node_facts_.server_now = client_.server_now();
  const Duration ahead = node_facts_.server_now - clock_.wall_now();
  if (std::chrono::abs(ahead - node_facts_.server_ahead) >= std::chrono::seconds(2)) node_facts_.server_ahead = ahead;
  auto facts = diagnose(*pipeline_, node_facts_, inquiries_.known());
  diagnose_volumes(at, facts);
  diagnose_controllers(at, facts);
  diagnose_proof(at, facts);
  const auto changes = board_.update(facts, at, clock_.wall_now());
  for (const Diagnosis& diagnosis : changes.raised) emit(EventType::diagnosis_raised, nullptr, &diagnosis);
  for (const Diagnosis& diagnosis : changes.withdrawn) emit(EventType::diagnosis_withdrawn, nullptr, &diagnosis);
}

}  // namespace haulout::drain
