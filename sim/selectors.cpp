#include "sim/selectors.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, bool mind_parentheses) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || (mind_parentheses && depth > 0))) continue;
    const auto part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

std::optional<Requirement> set_requirement(std::string_view term) {
  const auto open = term.find('(');
  if (open == std::string_view::npos || term.back() != ')') return std::nullopt;
  std::string_view head = trimmed(term.substr(0, open));
  Requirement result;
  if (head.ends_with(" notin")) {
    result.op = Requirement::Operator::not_in;
    head.remove_suffix(6);
  } else if (head.ends_with(" in")) {
    result.op = Requirement::Operator::in;
    head.remove_suffix(3);
  } else {
    return std::nullopt;
  }
  result.key = trimmed(head);
  for (const auto value : split(term.substr(open + 1, term.size() - open - 2), false))
    result.values.emplace_back(value);
  return result;
}

std::optional<Requirement> requirement(std::string_view term) {
  if (term.find('(') != std::string_view::npos) return set_requirement(term);
  const auto equals = term.find('=');
  if (equals == std::string_view::npos) {
    if (term.front() == '!')
      return Requirement{std::string(trimmed(term.substr(1))), Requirement::Operator::does_not_exist, {}};
    if (term.find(' ') != std::string_view::npos) return std::nullopt;
    return Requirement{std::string(term), Requirement::Operator::exists, {}};
  }
  const bool negated = equals > 0 && term[equals - 1] == '!';
  std::string_view value = term.substr(equals + 1);
  if (!value.empty() && value.front() == '=') value.remove_prefix(1);
  const auto key = trimmed(term.substr(0, equals - (negated ? 1 : 0)));
  if (key.empty()) return std::nullopt;
  return Requirement{std::string(key),
                     negated ? Requirement::Operator::not_in : Requirement::Operator::in,
                     {std::string(trimmed(value))}};
}

}  // namespace

Selector Selector::from_object(const Json& selector) {
  Selector result;
  if (!selector.is_object()) {
    result.nothing_ = true;
    return result;
  }
  const Json& labels = at(selector, "/matchLabels");
  if (labels.is_object())
    for (const auto& [key, value] : labels.items())
      result.requirements_.push_back({key, Requirement::Operator::in, {value.get<std::string>()}});
  for (const Json& expression : at(selector, "/matchExpressions")) {
    const std::string op = text(expression, "/operator");
    Requirement entry{text(expression, "/key"), Requirement::Operator::exists, {}};
    if (op == "In") entry.op = Requirement::Operator::in;
    if (op == "NotIn") entry.op = Requirement::Operator::not_in;
    if (op == "DoesNotExist") entry.op = Requirement::Operator::does_not_exist;
    for (const Json& value : at(expression, "/values")) entry.values.push_back(value.get<std::string>());
    result.requirements_.push_back(std::move(entry));
  }
  return result;
}

std::optional<Selector> Selector::from_text(std::string_view text) {
  Selector result;
  for (const auto term : split(text, true)) {
    auto entry = requirement(term);
    if (!entry) return std::nullopt;
    result.requirements_.push_back(*std::move(entry));
  }
  return result;
}

bool Selector::matches_labels(const Json& labels) const {
  if (nothing_) return false;
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& entry) {
    const bool present = labels.is_object() && labels.contains(entry.key);
    const std::string value = present && labels[entry.key].is_string() ? labels[entry.key].get<std::string>() : "";
    const bool listed = present && std::find(entry.values.begin(), entry.values.end(), value) != entry.values.end();
    switch (entry.op) {
      case Requirement::Operator::in: return listed;
      case Requirement::Operator::not_in: return !listed;
      case Requirement::Operator::exists: return present;
      case Requirement::Operator::does_not_exist: return !present;
    }
    return false;
  });
}

namespace {
// The field labels that a resource supports, as JSON pointers.
std::string field_pointer(std::string_view label, const ResourceInfo& info) {
  if (label == "metadata.name") return "/metadata/name";
  if (label == "metadata.namespace") return "/metadata/namespace";
  if (info.resource == "pods" && label == "spec.nodeName") return "/spec/nodeName";
  if (info.resource == "pods" && label == "status.phase") return "/status/phase";
  return {};
}
}  // namespace

std::optional<FieldSelector> FieldSelector::parse(std::string_view text, const ResourceInfo& info,
                                                  std::string* problem) {
  FieldSelector result;
  for (const auto term : split(text, false)) {
    const auto equals = term.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      *problem = fmt::format("invalid selector: '{}'; can't understand '{}'", text, term);
      return std::nullopt;
    }
    const bool negated = term[equals - 1] == '!';
    const auto label = term.substr(0, equals - (negated ? 1 : 0));
    std::string_view value = term.substr(equals + 1);
    if (!value.empty() && value.front() == '=') value.remove_prefix(1);
    std::string pointer = field_pointer(label, info);
    if (pointer.empty()) {
      *problem =
          info.resource == "pods"
              ? fmt::format("field label not supported: {}", label)
              : fmt::format("\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                            label);
      return std::nullopt;
    }
    result.terms_.push_back({std::move(pointer), std::string(value), negated});
  }
  return result;
}

bool FieldSelector::matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return (text(object, term.pointer.c_str()) == term.value) != term.negated;
  });
}

}  // namespace haulout::sim
