#include "agent/lifecycle/loading.hpp"

#include "agent/lifecycle/node_writer.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

asio::awaitable<void> Loading::run() {
  NodeView& view = context_.view;
  context_.activity.reloading();
  context_.writer.show_ready(false);
  Backoff backoff(patience);
  for (;;) {
    auto node = co_await context_.client.get_node(context_.options.node, context_.within(request_timeout));
    auto id = context_.parts.host.boot_id();
    if (node && !id) node = id.error();
    if (node) {
      view.set_boot_id(*std::move(id));
      view.learn(std::move(*node), view.news());
      context_.parts.node_is(view.node().uid);
      break;
    }
    tell_unread(node.error());
    co_await context_.pause(backoff.next(context_.rng, node.error().retry_after));
  }
  if (!requested_at_start_) requested_at_start_ = reboot_requested(view.node());
  context_.writer.take_over();
  context_.parts.slots.remember(context_.record.slot);
  context_.parts.tell(context_.writer.status());
}

void Loading::tell_unread(const Error& error) {
  const Record& record = context_.record;
  const std::string& name = context_.options.node;
  Status status{record.state, reason::api_unavailable, "node " + name + " cannot be read: " + error.message(),
                record.since, record.judged};
  if (k8s::is_gone(error)) {
    status.reason = reason::node_missing;
    status.message = "the cluster has no Node " + name +
                     ": it was deleted, or its kubelet has not registered it; the agent continues when it exists";
  }
  context_.parts.tell(status);
}

// A reboot request that arrives after the boot but before the agent starts cannot be distinguished from an earlier one,
// so it counts as served.
asio::awaitable<void> Loading::note_boot() {
  Record& record = context_.record;
  if (!context_.rebooted() || next_state(record.state, Event::boot_changed)) co_return;
  const bool told = !record.boot_id.empty();
  record.boot_id = context_.view.boot_id();
  co_await context_.writer.write(told && *requested_at_start_);
}

}  // namespace haulout::agent
