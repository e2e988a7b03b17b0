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
  // The server has no such Node, but a watch event arrived meanwhile: the Node was deleted, or created again.
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
  Trouble trouble(session_, "whether node " + session_.node_name() + " is still unschedulable could not be read");
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

}  // namespace haulout::drain
