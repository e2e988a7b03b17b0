#include "agent/lifecycle/context.hpp"

#include <utility>

#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {

Decision cordon_lost() {
  return {Event::cordon_lost, reason::uncordoned, "the node was uncordoned during its update"};
}

Activity::Activity(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> remove_ready_file)
    : clock_(clock), remove_ready_file_(std::move(remove_ready_file)), changed_(std::move(executor)) {}

void Activity::interrupt(Decision decision) {
  decide(std::move(decision));
  remove_ready_file_();
  if (stop_) stop_();
  wake();
}

void Activity::interrupt_to_reload() {
  reload();
  remove_ready_file_();
  wake();
}

boost::asio::awaitable<void> Activity::wait(TimePoint until) {
  if (!must_reload_) co_await changed_.wait_until(clock_, until);
}

Task<PatchedNode> patch_own_node(const Context& context, std::string patch, Duration limit) {
  const std::string& name = context.options.node;
  PatchedNode result;
  std::uint64_t news = context.view.news();
  auto node = co_await context.client.patch_node(name, std::move(patch), k8s::DryRun::none, context.within(limit));
  if (!node && k8s::is_conflict(node.error())) {
    result.conflict = std::move(node).error();
    news = context.view.news();
    node = co_await context.client.get_node(name, context.within(limit));
  }
  if (!node) co_return std::move(node).error();
  result.replaced = node->uid != context.node().uid;
  if (!result.replaced) context.view.learn(*std::move(node), news);
  co_return result;
}

}  // namespace haulout::agent
