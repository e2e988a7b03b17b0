#include "agent/cordon_job.hpp"

#include "agent/exit_code.hpp"
#include "agent/node_labels.hpp"
#include "agent/text.hpp"
#include "agent/wording.hpp"

namespace haulout::agent {
namespace {

std::optional<std::string> agent_state(const k8s::Node& node) {
  const auto found = node.labels.find(std::string(state_label));
  if (found == node.labels.end() || found->second == "idle") return std::nullopt;
  return found->second;
}

}  // namespace

CordonJob::CordonJob(Tools tools, Settings settings) : tools_(std::move(tools)), settings_(std::move(settings)) {}

boost::asio::awaitable<void> CordonJob::run() {
  auto nodes = co_await resolve_nodes(tools_.client, settings_, saturating_add(tools_.clock.now(), call_limit));
  if (!nodes) {
    exit_code_ = report_failure(tools_, nodes.error());
    co_return;
  }
  left_ = *std::move(nodes);
  const bool on = settings_.command == Command::cordon;
  while (!left_.empty()) {
    const std::string node = left_.front();
    changing_ = settings_.drain.dry_run == drain::DryRunMode::none;
    auto result = co_await change(node);
    changing_ = false;
    left_.erase(left_.begin());
    if (!result) {
      exit_code_ = std::max(exit_code_, report_failure(tools_, std::move(result).error().with_context("node/" + node)));
      continue;
    }
    if (const auto state = agent_state(result->before); !on && state)
      tools_.console.warn(
          fmt::format("Warning: an agent holds node/{} (state {}); it may cordon it again", node, *state));
    tools_.console.say(cordon_line(node, result->changed, on, settings_.drain.dry_run));
  }
}

int CordonJob::finish(std::optional<int> signal) {
  if (!signal) return exit_code_;
  // The request may have been carried out, although nobody has waited for the answer.
  if (changing_) {
    tools_.console.warn(fmt::format("interrupted; whether node/{} is cordoned now is not known", left_.front()));
    left_.erase(left_.begin());
  }
  if (!left_.empty()) tools_.console.warn("interrupted; not done: " + joined(left_, ", "));
  return exit_code_of_signal(*signal);
}

Task<drain::CordonChange> CordonJob::change(std::string node) {
  const TimePoint deadline = saturating_add(tools_.clock.now(), call_limit);
  if (settings_.drain.dry_run == drain::DryRunMode::client) co_return co_await preview(std::move(node));
  const k8s::DryRun dry_run =
      settings_.drain.dry_run == drain::DryRunMode::server ? k8s::DryRun::server : k8s::DryRun::none;
  if (settings_.command == Command::uncordon)
    co_return co_await drain::uncordon(tools_.client, tools_.rng, std::move(node), true, dry_run, deadline);
  drain::CordonMark mark{settings_.drain.run_id, settings_.drain.cordoned_by, tools_.clock.wall_now()};
  co_return co_await drain::cordon(tools_.client, tools_.rng, std::move(node), {}, std::move(mark), dry_run, deadline);
}

// --dry-run=client: decided on what the server has, nothing is sent.
Task<drain::CordonChange> CordonJob::preview(std::string node) {
  CO_TRY(const k8s::Node found, co_await tools_.client.get_node(node, saturating_add(tools_.clock.now(), call_limit)));
  const drain::CordonMark mark{settings_.drain.run_id, settings_.drain.cordoned_by, tools_.clock.wall_now()};
  const auto patch =
      settings_.command == Command::cordon ? drain::cordon_patch(found, mark) : drain::uncordon_patch(found, true);
  co_return drain::CordonChange{found, found, patch.has_value()};
}

}  // namespace haulout::agent
