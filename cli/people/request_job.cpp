#include "cli/people/request_job.hpp"

#include <fmt/format.h>

#include "agent/node/node_status.hpp"
#include "agent/process/exit_code.hpp"
#include "base/text.hpp"
#include "cli/people/change.hpp"
#include "cli/people/node_state.hpp"

namespace haulout::cli {

Task<> RequestJob::act(std::string node) {
  CO_TRY(const k8s::Node found, co_await tools_.client.get_node(node, deadline()));
  const std::string state = state_shown(found);
  if (state.empty()) {
    exit_code_ = std::max(exit_code_, agent::exit_not_done);
    tools_.console.warn(fmt::format(
        "error: no agent has reported on node/{}, so no agent would reboot it: nothing was requested", node));
    co_return Result<>();
  }
  if (agent::reboot_requested(found)) {
    tools_.console.say(fmt::format("a reboot of node/{} was already requested (state {})", node, state));
    co_return Result<>();
  }
  const std::string& who = settings_.drain.cordoned_by;
  const std::string& reason = settings_.people.reason;
  const std::string value = reason.empty() ? "reboot" : fmt::format("reboot; {} ({})", reason, who);
  CO_CHECK(co_await change_annotation(tools_.client, tools_.rng, node, std::string(agent::request_annotation), value,
                                      deadline()));
  tools_.console.say(fmt::format("reboot of node/{} requested (state {})", node, state));
  if (state == to_string(agent::State::degraded))
    tools_.console.warn(fmt::format("Warning: node/{0} is degraded, so it is not updated: `{1} explain {0}` shows why",
                                    node, tools_.program));
  co_return Result<>();
}

}  // namespace haulout::cli
