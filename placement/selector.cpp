#include "placement/selector.hpp"

namespace haulout::placement {
namespace {

// Drops values that are not strings, since no label has such a value.
std::vector<std::string> strings(const Json& values) {
  std::vector<std::string> result;
  for (const Json& value : values)
    if (value.is_string()) result.push_back(value.get<std::string>());
  return result;
}

}  // namespace

Selector Selector::from_object(const Json& selector) {
  using Operator = k8s::LabelSelector::Operator;
  Selector result;
  if (!selector.is_object()) {
    result.nothing_ = true;
    return result;
  }
  std::vector<k8s::LabelSelector::Requirement> requirements;
  const Json& labels = at(selector, "/matchLabels");
  if (labels.is_object())
    for (const auto& [key, value] : labels.items())
      requirements.push_back({key, Operator::in, strings(Json::array({value}))});
  for (const Json& expression : at(selector, "/matchExpressions")) {
    const std::string op = text(expression, "/operator");
    k8s::LabelSelector::Requirement entry{text(expression, "/key"), Operator::exists, {}};
    if (op == "In") entry.op = Operator::in;
    if (op == "NotIn") entry.op = Operator::not_in;
    if (op == "DoesNotExist") entry.op = Operator::does_not_exist;
    entry.values = strings(at(expression, "/values"));
    requirements.push_back(std::move(entry));
  }
  result.requirements_ = k8s::LabelSelector(std::move(requirements));
  return result;
}

std::optional<Selector> Selector::from_text(std::string_view text) {
  auto parsed = k8s::parse_label_selector(text);
  if (!parsed) return std::nullopt;
  Selector result;
  result.requirements_ = *std::move(parsed);
  return result;
}

std::vector<std::pair<std::string, std::string>> Selector::demands() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [key, op, values] : requirements_.requirements())
    if (op == k8s::LabelSelector::Operator::in && values.size() == 1) result.emplace_back(key, values.front());
  return result;
}

bool Selector::matches_labels(const Json& labels) const {
  if (nothing_) return false;
  return requirements_.matches([&labels](const std::string& key) -> const std::string* {
    if (!labels.is_object()) return nullptr;
    const auto label = labels.find(key);
    return label == labels.end() ? nullptr : label->get_ptr<const std::string*>();
  });
}

}  // namespace haulout::placement
