#include "agent/node/readiness.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace haulout::agent {

Result<WantedCondition> parse_condition(std::string_view text) {
  const auto equals = text.find('=');
  WantedCondition condition{.type = std::string(text.substr(0, equals))};
  if (equals != text.npos) condition.status = text.substr(equals + 1);
  const bool valid_type =
      !condition.type.empty() && std::all_of(condition.type.begin(), condition.type.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.' || c == '/';
      });
  const bool valid_status = condition.status == "True" || condition.status == "False" || condition.status == "Unknown";
  if (valid_type && valid_status) return condition;
  return Error(
      Errc::invalid,
      fmt::format("{}; write it like NetworkReady or KernelDeadlock=False: the type of a condition of the Node, "
                  "and the status True, False or Unknown",
                  valid_type ? "the status of a condition is not \"" + condition.status + '"'
                             : "the type of a condition is not \"" + condition.type + '"'));
}

std::string not_shown_yet(const k8s::Node& node, const std::vector<WantedCondition>& wanted) {
  for (const k8s::Taint& taint : node.taints)
    if (taint.key.starts_with(readiness_taint_prefix)) return fmt::format("the Node still has the taint {}", taint.key);
  for (const auto& [type, status] : wanted) {
    const auto found = std::find_if(node.conditions.begin(), node.conditions.end(),
                                    [&type](const k8s::NodeCondition& condition) { return condition.type == type; });
    if (found == node.conditions.end())
      return fmt::format("the Node has no condition {} yet; it must be {} (--verify-condition)", type, status);
    if (found->status != status)
      return fmt::format("the Node's condition {} is {}; it must be {} (--verify-condition)", type, found->status,
                         status);
  }
  return {};
}

}  // namespace haulout::agent
