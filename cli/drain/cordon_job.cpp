#include "cli/drain/cordon_job.hpp"

#include <fmt/format.h>

#include "agent/node/node_labels.hpp"
#include "agent/process/exit_code.hpp"
#include "base/text.hpp"
#include "cli/drain/wording.hpp"

namespace haulout::cli {
namespace {

std::optional<std::string> agent_state(const k8s::Node& node) {
  const auto found = node.labels.find(std::string(agent::state_label));
  if (found == node.labels.end() || found->second == "idle") return std::nullopt;
  return found->second;
}

}  // namespace

CordonJob::CordonJob(Tools tools, Settings settings) : tools_(std::move(tools)), settings_(std::move(settings)) {}

boost::asio::awaitable<void> CordonJob::run() {
  auto nodes = co_await look_up();
  if (!nodes) {
    exit_code_ = report_failure(tools_, nodes.error());
    co_return;
  }
  if (nodes->empty()) tools_.console.warn(no_match(settings_.selector));
  left_ = *std::move(nodes);
  const bool on = settings_.command == Command::cordon;
  while (!left_.empty()) {
    const k8s::Node node = left_.front();
    changing_ = settings_.drain.dry_run == drain::DryRunMode::none;
    auto result = co_await change(node);
    changing_ = false;
    left_.erase(left_.begin());
    if (!result) {
      exit_code_ =
          std::max(exit_code_, report_failure(tools_, std::move(result).error().with_context("node/" + node.name)));
      continue;
    }
    if (const auto state = agent_state(result->before); !on && state)
      tools_.console.warn(fmt::format("Warning: the agent of node/{} is updating it (state {}) and may cordon it again",
                                      node.name, *state));
    // If the answer to a first request was lost, its repetition finds nothing to change. The Node that was read at the
    // start shows that this command changed it.
    const bool changed = result->changed || node.unschedulable != on;
    tools_.console.say(cordon_line(node.name, changed, on, settings_.drain.dry_run));
  }
}

int CordonJob::finish(std::optional<int> signal) {
  if (!signal) return exit_code_;
  // The server may have applied the request, although the signal came before its answer.
  if (changing_) {
    tools_.console.warn(fmt::format("interrupted; it is unknown whether node/{} is cordoned now", left_.front().name));
    left_.erase(left_.begin());
  }
  std::vector<std::string> names;
  names.reserve(left_.size());
  for (const k8s::Node& node : left_) names.push_back(node.name);
  if (!names.empty()) tools_.console.warn("interrupted; not done: " + joined(names, ", "));
  return agent::exit_code_of_signal(*signal);
}

Task<std::vector<k8s::Node>> CordonJob::look_up() {
  if (settings_.selector.empty()) co_return co_await named_nodes(tools_, settings_.nodes, call_limit);
  co_return co_await select_nodes(tools_, settings_.selector, saturating_add(tools_.clock.now(), call_limit));
}

Task<drain::CordonChange> CordonJob::change(k8s::Node node) {
  const bool on = settings_.command == Command::cordon;
  drain::CordonMark mark{settings_.drain.run_id, settings_.drain.cordoned_by, tools_.clock.wall_now()};
  if (settings_.drain.dry_run == drain::DryRunMode::client) {
    const auto patch = on ? drain::cordon_patch(node, mark) : drain::uncordon_patch(node, true);
    co_return drain::CordonChange{node, node, patch.has_value()};
  }
  const k8s::DryRun dry_run =
      settings_.drain.dry_run == drain::DryRunMode::server ? k8s::DryRun::server : k8s::DryRun::none;
  const auto attempt = [&, this](TimePoint until) {
    return on ? drain::cordon(tools_.client, tools_.rng, node.name, {}, mark, dry_run, until)
              : drain::uncordon(tools_.client, tools_.rng, node.name, true, dry_run, until);
  };
  co_return co_await ask<drain::CordonChange>(tools_, saturating_add(tools_.clock.now(), call_limit), attempt);
}

}  // namespace haulout::cli
