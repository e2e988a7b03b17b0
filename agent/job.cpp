#include "agent/job.hpp"

#include "agent/advice.hpp"
#include "agent/exit_code.hpp"
#include "agent/text.hpp"

namespace haulout::agent {

Task<std::vector<std::string>> resolve_nodes(k8s::Client& client, Settings settings, TimePoint deadline) {
  if (settings.selector.empty()) co_return settings.nodes;
  CO_TRY(const auto list, co_await client.list_nodes(settings.selector, deadline));
  std::vector<std::string> names;
  names.reserve(list.items.size());
  for (const k8s::Node& node : list.items) names.push_back(node.name);
  if (!names.empty()) co_return names;
  Error none(Errc::status, fmt::format("no node matches the selector \"{}\"; 'kubectl get nodes --show-labels' shows "
                                       "what there is",
                                       settings.selector));
  none.peer.emplace().code = 404;
  none.peer->structured = true;
  co_return none;
}

int report_failure(const Tools& tools, const Error& error) {
  tools.console.warn("error: " + printable(error.message()));
  for (const std::string& line : advice(error, tools.ledger.last_denied())) tools.console.warn(line);
  return exit_code(error);
}

}  // namespace haulout::agent
