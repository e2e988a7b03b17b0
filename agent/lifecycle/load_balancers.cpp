// The agent excludes a node from external load balancers before the first eviction, so that they stop sending traffic
// to it.
#include <fmt/chrono.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

// Called after the cordon. If the node is already excluded, the wait began at the time in the cordon's mark: a wait
// before a restart of the agent counts.
asio::awaitable<void> Agent::Impl::leave_load_balancers() {
  if (options_.lb_drain_wait == Duration::zero()) co_return;
  const auto wait_for = std::chrono::duration_cast<WallTime::duration>(options_.lb_drain_wait);
  Backoff backoff(patience);
  std::optional<WallTime> until;
  while (!until) {
    auto node = co_await client_.get_node(options_.node, within(request_timeout));
    const auto patch = node ? exclude_patch(*node, true) : std::nullopt;
    if (node && !patch) {
      const auto mark = drain::mark_of(*node);
      until = (mark && mark->run == record_.run ? mark->at : client_.server_now()) + wait_for;
    } else if (node) {
      node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
      if (node) until = client_.server_now() + wait_for;
    }
    if (node) {
      see_node(*node);
    } else {
      if (!k8s::is_conflict(node.error()))
        held_up_ = {reason::cannot_exclude,
                    fmt::format("the node cannot be excluded from load balancers yet: {}", node.error().message())};
      changed_->notify();
      co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
    }
  }
  const auto left = std::clamp<Duration>(*until - client_.server_now(), Duration::zero(), options_.lb_drain_wait);
  held_up_ = {reason::waiting_for_load_balancers,
              fmt::format("waiting until {:%FT%TZ} so that load balancers stop sending traffic to this node",
                          std::chrono::floor<std::chrono::seconds>(*until))};
  changed_->notify();
  co_await clock_.sleep_until(now() + left);
  held_up_.reset();
  changed_->notify();
}

asio::awaitable<void> Agent::Impl::return_to_load_balancers() {
  Backoff backoff(patience);
  while (!reload_) {
    const auto patch = exclude_patch(node_, false);
    if (!patch) co_return;
    std::uint64_t news = node_news_;
    auto node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
    const bool conflict = !node && k8s::is_conflict(node.error());
    if (conflict) news = node_news_;
    if (conflict) node = co_await client_.get_node(options_.node, within(request_timeout));
    if (node) {
      reload_ = node->uid != node_.uid;
      if (!reload_) learn(std::move(*node), news);
      if (conflict) co_await clock_.sleep_until(now() + backoff.next(rng_));
      continue;
    }
    reload_ = k8s::is_gone(node.error());
    if (reload_) co_return;
    co_await show(reason::cannot_restore,
                  "the node cannot be added to load balancers again yet: " + node.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
  }
}

}  // namespace haulout::agent
