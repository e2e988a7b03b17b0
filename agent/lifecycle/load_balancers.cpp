#include "agent/lifecycle/load_balancers.hpp"

#include <fmt/chrono.h>

#include "agent/lifecycle/node_writer.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

asio::awaitable<void> leave_load_balancers(const Context& context, std::function<void(std::optional<HoldUp>)> hold) {
  const Duration limit = context.options.lb_drain_wait;
  if (limit == Duration::zero()) co_return;
  k8s::Client& client = context.client;
  const std::string& name = context.options.node;
  const auto wait_for = std::chrono::duration_cast<WallTime::duration>(limit);
  Backoff backoff(patience);
  std::optional<WallTime> until;
  while (!until) {
    auto node = co_await client.get_node(name, context.within(request_timeout));
    const auto patch = node ? exclude_patch(*node, true) : std::nullopt;
    if (node && !patch) {
      const auto mark = drain::mark_of(*node);
      until = (mark && mark->run == context.record.run ? mark->at : client.server_now()) + wait_for;
    } else if (node) {
      node = co_await client.patch_node(name, *patch, k8s::DryRun::none, context.within(request_timeout));
      if (node) until = client.server_now() + wait_for;
    }
    if (node) {
      context.view.see(*node);
    } else {
      if (!k8s::is_conflict(node.error()))
        hold(HoldUp{reason::cannot_exclude,
                    fmt::format("the node cannot be excluded from load balancers yet: {}", node.error().message())});
      context.activity.wake();
      co_await context.pause(backoff.next(context.rng, node.error().retry_after));
    }
  }
  const auto left = std::clamp<Duration>(*until - client.server_now(), Duration::zero(), limit);
  hold(HoldUp{reason::waiting_for_load_balancers,
              fmt::format("waiting until {:%FT%TZ} so that load balancers stop sending traffic to this node",
                          std::chrono::floor<std::chrono::seconds>(*until))});
  context.activity.wake();
  co_await context.pause(left);
  hold(std::nullopt);
  context.activity.wake();
}

asio::awaitable<void> return_to_load_balancers(const Context& context) {
  k8s::Client& client = context.client;
  const std::string& name = context.options.node;
  Backoff backoff(patience);
  while (!context.activity.must_reload()) {
    const auto patch = exclude_patch(context.node(), false);
    if (!patch) co_return;
    std::uint64_t news = context.view.news();
    auto node = co_await client.patch_node(name, *patch, k8s::DryRun::none, context.within(request_timeout));
    const bool conflict = !node && k8s::is_conflict(node.error());
    if (conflict) news = context.view.news();
    if (conflict) node = co_await client.get_node(name, context.within(request_timeout));
    if (node) {
      if (node->uid != context.node().uid)
        context.activity.reload();
      else
        context.view.learn(std::move(*node), news);
      if (conflict) co_await context.pause(backoff.next(context.rng));
      continue;
    }
    if (k8s::is_gone(node.error())) co_return context.activity.reload();
    co_await context.writer.show(reason::cannot_restore,
                                 "the node cannot be added to load balancers again yet: " + node.error().message());
    co_await context.pause(backoff.next(context.rng, node.error().retry_after));
  }
}

}  // namespace haulout::agent
