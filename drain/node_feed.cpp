#include "drain/node_feed.hpp"

#include "k8s/objects.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

NodeFeed::NodeFeed(Session& session, Pipeline& pipeline, CordonKeeper& cordon)
    : session_(session), pipeline_(pipeline), cordon_(cordon) {
  facts_.name = session.node_name();
  facts_.own_uid = session.options().own_pod_uid;
}

void NodeFeed::found(k8s::Node node) {
  node_ = std::move(node);
  facts_.unschedulable = node_.unschedulable;
  facts_.ready = node_.ready;
  cordon_.found(node_);
}

void NodeFeed::cordoned(k8s::Node node) {
  node_ = std::move(node);
  facts_.expect_cordon = session_.options().dry_run == DryRunMode::none;
  facts_.unschedulable = cordon_.report().after;
}

void NodeFeed::see(const k8s::Node* node) {
  if (!node || node->uid != node_.uid) {
    facts_.gone = true;
    pipeline_.set_paused(true, session_.now());
    return;
  }
  const bool took_pods_unseen = is_another_cordon(node_, *node);
  // Pods may have been bound while the node was schedulable and may not be visible yet. So the settle time restarts.
  if (took_pods_unseen || (node->unschedulable && !facts_.unschedulable)) cordon_.begins_again();
  if (took_pods_unseen) pipeline_.cordoned_anew(session_.now());
  node_ = *node;
  facts_.unschedulable = node->unschedulable;
  facts_.unschedulable_manager = node->unschedulable_manager;
  facts_.ready = node->ready;
  pipeline_.set_paused(!facts_.unschedulable, session_.now());
  cordon_.seen(*node);
}

Task<bool> NodeFeed::read() {
  const std::size_t events = events_;
  auto node = co_await session_.client().get_node(session_.node_name(), session_.within(request_timeout));
  if (!node && !k8s::is_gone(node.error())) co_return std::move(node).error();
  const bool told = events != events_;
  // The server answered 404, but a watch event arrived meanwhile. The Node may have been deleted after that event, or
  // created again after the answer. It is unknown which, so the caller must read again.
  if (told && !node) co_return false;
  // A watch event that arrived meanwhile may be newer than the answer. Then its state stays valid.
  if (!told || !k8s::is_older(node->resource_version, node_.resource_version)) see(node ? &*node : nullptr);
  co_return true;
}

asio::awaitable<void> NodeFeed::follow() {
  k8s::ReflectorOptions options;
  options.field_selector = "metadata.name=" + session_.node_name();
  view_ = std::make_unique<k8s::Reflector<k8s::Node>>(
      session_.client(), session_.rng(), options,
      [this](const std::string& uid, const k8s::Node* node) {
        ++events_;
        if (node || uid == node_.uid) see(node);
      },
      [this] {
        const auto& error = view_->health().error;
        list_forbidden_ = view_->health().polling && error && k8s::is_forbidden(*error);
        session_.changed().notify();
      });
  view_->seed({{node_.resource_version, {}}, {node_}});
  co_await with_task_group([this](TaskGroup& group) {
    auto run = [](k8s::Reflector<k8s::Node>& view) -> asio::awaitable<void> { (void)co_await view.run(); };
    group.spawn(run(*view_));
    return poll();
  });
}

// If the drain may get the Node but not list or watch it (`kubectl drain` needs no more), it reads the Node about every
// 5 s.
asio::awaitable<void> NodeFeed::poll() {
  for (;;) {
    const Duration pause = session_.rng().between(std::chrono::seconds(4), std::chrono::seconds(6));
    co_await session_.clock().sleep_until(session_.now() + pause);
    if (!list_forbidden_) continue;
    (void)co_await read();
    session_.changed().notify();
  }
}

void NodeFeed::look(TaskGroup& group) {
  if (!doubt_.runs() && late_pods_ != late_pods_settled_) doubt_.start(group, doubt());
}

asio::awaitable<void> NodeFeed::doubt() {
  Backoff backoff(BackoffOptions{});
  Trouble trouble(session_,
                  "node " + session_.node_name() + " could not be read, so it is unknown whether it is still cordoned");
  while (late_pods_ != late_pods_settled_) {
    const std::size_t late = late_pods_;
    const auto answer = co_await read();
    if (answer && *answer) {
      late_pods_settled_ = late;
      continue;
    }
    if (!answer) trouble.tell(answer.error());
    const auto retry_after = answer ? std::nullopt : answer.error().retry_after;
    co_await session_.clock().sleep_until(session_.now() + backoff.next(session_.rng(), retry_after));
  }
  trouble.over();
  session_.changed().notify();
}

asio::awaitable<void> PodsFeed::follow() {
  k8s::ReflectorOptions options;
  options.field_selector = "spec.nodeName=" + session_.node_name();
  options.page_size = session_.options().page_size;
  options.gather_until = [this] { return gathered_at(session_.now(), pipeline_.patience()); };
  view_ = std::make_unique<k8s::Reflector<k8s::Pod>>(
      session_.client(), session_.rng(), options,
      [this](const std::string& uid, const k8s::Pod* pod) {
        const auto asked = view_->list_asked();
        if (!pod && asked)
          pipeline_.pod_missing(uid, *asked, session_.now(), session_.wall_now());
        else if (!pod)
          pipeline_.pod_gone(uid, session_.now(), session_.wall_now());
        else if (asked)
          pipeline_.pod_listed(*pod, *asked, session_.now());
        else
          pipeline_.pod_changed(*pod, session_.now());
      },
      [this] {
        // The view does not report the deletion of pods that the drain knows only from other lists. So the pipeline
        // compares its pods with the whole list.
        if (const auto asked = view_->list_asked())
          pipeline_.only_listed(view_->objects(), *asked, session_.now(), session_.wall_now());
        session_.changed().notify();
      });
  view_->seed({listed_.meta, std::exchange(listed_.items, {})});
  // The view was seeded with a list, so run() ends only by cancellation.
  static_cast<void>(co_await view_->run());
}

void PodsFeed::read_on() {
  if (view_) view_->read_on();
}

// Runs concurrently with the main loop, so that a list that stalls delays nothing.
asio::awaitable<void> PodsFeed::doubt() {
  if (co_await node_.read()) static_cast<void>(co_await view_->look_again());
}

// Lists the pods again if the server's answers contradict the view of a pod, or if a pod is terminating or parked for
// long. After etcd was restored from a backup, a watch may wait for a revision that is hours away, or may have lost
// earlier events. It would then never report that the pod has changed or was deleted.
void PodsFeed::look(TaskGroup& group) {
  if (session_.now() >= doubt_not_before_ && pipeline_.any_in_doubt()) {
    doubt_not_before_ = session_.now() + doubt_interval;
    group.spawn(doubt());
  }
  if (held_.due(view_ && pipeline_.any_parked(), session_.now())) group.spawn(doubt());
}

void PodsFeed::watch_health() {
  if (!view_) return;
  const auto& health = view_->health();
  // A watch that was closed without an error is reopened at once and misses nothing (load balancers close idle
  // connections), so it does not count as lost.
  const bool lost = !health.connected && health.error.has_value();
  disconnected_since_ = lost ? std::min(disconnected_since_, session_.now()) : TimePoint::max();
  const Told tell = lost && session_.now() >= disconnected_since_ + worth_a_word ? Told::disconnected : Told::connected;
  if (tell == told_) return;
  told_ = tell;
  if (tell == Told::disconnected)
    session_.emit(EventType::disconnected,
                  "the pods of node " + session_.node_name() + " cannot be watched: " + health.error->message());
  else
    session_.emit(EventType::reconnected);
}

TimePoint PodsFeed::next_wake(TimePoint at) const {
  TimePoint next = held_.next();
  if (const TimePoint told = saturating_add(disconnected_since_, worth_a_word); told > at) next = std::min(next, told);
  if (doubt_not_before_ > at && pipeline_.any_in_doubt()) next = std::min(next, doubt_not_before_);
  return next;
}

}  // namespace haulout::drain
