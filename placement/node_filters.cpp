// Filters that depend on the node alone: its taints and labels against a pod's tolerations, selector and node affinity.
#include <algorithm>
#include <charconv>

#include "placement/room.hpp"

namespace haulout::placement {
namespace {

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

bool holds(const Json& expression, const std::string* value) {
  const std::string op = text(expression, "/operator");
  const Json& values = at(expression, "/values");
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  const bool listed = value != nullptr && values.is_array() && std::count(values.begin(), values.end(), *value) > 0;
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (value == nullptr || !values.is_array() || values.empty() || !values[0].is_string()) return false;
  const auto left = whole(*value), right = whole(values[0].get<std::string>());
  if (!left || !right) return false;
  return op == "Gt" ? *left > *right : op == "Lt" && *left < *right;
}

// Evaluates one of nodeSelectorTerms: all its expressions must hold. A term without expressions matches nothing.
bool term_matches(const Json& term, const Json& node) {
  const Json& expressions = at(term, "/matchExpressions");
  const Json& fields = at(term, "/matchFields");
  if (expressions.empty() && fields.empty()) return false;
  for (const Json& expression : expressions) {
    const auto value = label(node, text(expression, "/key"));
    if (!holds(expression, value ? &*value : nullptr)) return false;
  }
  const std::string name = name_of(node);
  for (const Json& field : fields)
    if (text(field, "/key") != "metadata.name" || !holds(field, &name)) return false;
  return true;
}

}  // namespace

bool tolerates_node(const Json& pod, const Json& node) {
  for (const Json& taint : at(node, "/spec/taints")) {
    const std::string effect = text(taint, "/effect");
    if (effect != "PreferNoSchedule" && !tolerates(pod, text(taint, "/key"), effect, text(taint, "/value")))
      return false;
  }
  return true;
}

bool wants_node(const Json& pod, const Json& node) {
  const Json& selector = at(pod, "/spec/nodeSelector");
  if (selector.is_object())
    for (const auto& [key, value] : selector.items()) {
      const auto has = label(node, key);
      if (!has || value != *has) return false;
    }
  const Json& terms =
      at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  return !terms.is_array() ||
         std::any_of(terms.begin(), terms.end(), [&](const Json& term) { return term_matches(term, node); });
}

}  // namespace haulout::placement
