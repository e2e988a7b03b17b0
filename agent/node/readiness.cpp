#include "agent/node/readiness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/ascii.hpp"
#include "base/text.hpp"

namespace haulout::agent {

namespace {

// How many taints and conditions a text for people names.
constexpr std::size_t named = 3;
// A taint with a longer key than the API allows (prefix, slash, name) is not kept in the record.
constexpr std::size_t longest_taint = 253 + 1 + 63;

bool is_readiness_taint(const k8s::Taint& taint) {
  return taint.key.starts_with(readiness_taint_prefix);
}

bool is_type(std::string_view text) {
  return !text.empty() && text.size() <= k8s::longest_condition_type &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '/'; });
}

}  // namespace

// The messages follow the value in the report of the configuration, as those of the other options do.
Result<WantedCondition> parse_condition(std::string_view text) {
  constexpr const char* form =
      "write TYPE or TYPE=STATUS, like example.com/NetworkReady or example.com/Broken=False; STATUS is True, False or "
      "Unknown";
  const auto equals = text.find('=');
  WantedCondition condition{.type = std::string(text.substr(0, equals))};
  if (equals != text.npos) condition.status = text.substr(equals + 1);
  if (!is_type(condition.type)) return Error(Errc::invalid, fmt::format("it names no type of a condition; {}", form));
  if (condition.status != "True" && condition.status != "False" && condition.status != "Unknown")
    return Error(Errc::invalid, fmt::format("its status is none that conditions have; {}", form));
  if (condition.type == "Ready")
    return Error(Errc::invalid,
                 "Ready is the kubelet's condition, and the agent always waits for it; remove this value");
  if (k8s::own_condition(condition.type))
    return Error(Errc::invalid,
                 fmt::format("{} is a condition that the agent itself changes during the update, so it would wait for "
                             "itself; name a condition of another program",
                             condition.type));
  return condition;
}

std::set<std::string> readiness_taints(const k8s::Node& node) {
  std::set<std::string> keys;
  for (const k8s::Taint& taint : node.taints)
    if (is_readiness_taint(taint) && taint.key.size() <= longest_taint) keys.insert(taint.key);
  while (keys.size() > most_old_taints) keys.erase(std::prev(keys.end()));
  return keys;
}

std::string not_shown_yet(const k8s::Node& node, const std::set<std::string>& old_taints,
                          const std::vector<WantedCondition>& wanted) {
  std::vector<std::string> lacks;
  for (const k8s::Taint& taint : node.taints)
    if (is_readiness_taint(taint) && !old_taints.contains(taint.key))
      lacks.push_back(fmt::format("the Node has the taint {}", printable(taint.key.substr(0, longest_taint))));
  for (const auto& [type, status] : wanted) {
    const auto found = std::find_if(node.conditions.begin(), node.conditions.end(),
                                    [&type](const k8s::NodeCondition& condition) { return condition.type == type; });
    if (found == node.conditions.end())
      lacks.push_back(fmt::format("the Node has no condition {} (--verify-condition: {})", type, status));
    else if (found->status != status)
      lacks.push_back(fmt::format("the Node's condition {} is {} (--verify-condition: {})", type,
                                  found->status.empty() ? "without a valid status" : found->status, status));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(named, lacks.size()); ++i) text += (i == 0 ? "" : "; ") + lacks[i];
  if (lacks.size() > named) text += fmt::format("; and {} more", lacks.size() - named);
  return text;
}

}  // namespace haulout::agent
