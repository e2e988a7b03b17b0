#include "k8s/label_selector.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/ascii.hpp"
#include "base/text.hpp"

namespace haulout::k8s {
namespace {

using Operator = LabelSelector::Operator;
using Requirement = LabelSelector::Requirement;

constexpr std::size_t longest_name = 63;     // of a label name and of a label value
constexpr std::size_t longest_prefix = 253;  // of a DNS subdomain

bool valid_prefix(std::string_view prefix) {
  if (prefix.empty() || prefix.size() > longest_prefix) return false;
  char before = '.';
  for (const char c : prefix) {
    const bool lower = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
    if (!lower && c != '-' && c != '.') return false;
    if (before == '.' && !lower) return false;
    if (c == '.' && before == '-') return false;
    before = c;
  }
  return before != '.' && before != '-';
}

bool valid_key(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return is_label_name(key);
  return valid_prefix(key.substr(0, slash)) && is_label_name(key.substr(slash + 1));
}

bool holds(const Requirement& requirement, const LabelSelector::ValueOf& value_of) {
  const std::string* label = value_of(requirement.key);
  const bool present = label != nullptr;
  const auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *label) != requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::in: return present && listed();
    case Operator::not_in: return !present || !listed();
    case Operator::exists: return present;
    case Operator::does_not_exist: return !present;
    case Operator::greater_than:
    case Operator::less_than: break;
  }
  if (!present || requirement.values.size() != 1) return false;
  const auto have = parse_number<std::int64_t>(*label);
  const auto bound = parse_number<std::int64_t>(requirement.values.front());
  if (!have || !bound) return false;
  return requirement.op == Operator::greater_than ? *have > *bound : *have < *bound;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<LabelSelector> parse() {
    std::vector<Requirement> requirements;
    skip_blanks();
    if (at_end()) return LabelSelector();
    for (;;) {
      auto requirement = parse_requirement();
      if (!requirement) return std::move(requirement).error();
      requirements.push_back(*std::move(requirement));
      if (at_end()) return LabelSelector(std::move(requirements));
      if (!accept(",")) return failure(fmt::format("expected ',' before '{}'", rest()));
    }
  }

 private:
  Result<Requirement> parse_requirement() {
    Requirement requirement;
    const bool negated = accept("!");
    requirement.key = std::string(word());
    if (requirement.key.empty()) {
      return failure(at_end() ? "expected a label key at the end"
                              : fmt::format("expected a label key before '{}'", rest()));
    }
    if (!valid_key(requirement.key)) return failure(fmt::format("'{}' is not a label key", requirement.key));
    if (negated) {
      requirement.op = Operator::does_not_exist;
      return requirement;
    }
    if (at_end() || peek() == ',') return requirement;
    return parse_comparison(std::move(requirement));
  }

  Result<Requirement> parse_comparison(Requirement requirement) {
    if (accept("!=")) return parse_value(std::move(requirement), Operator::not_in);
    if (accept("==") || accept("=")) return parse_value(std::move(requirement), Operator::in);
    if (accept(">")) return parse_bound(std::move(requirement), Operator::greater_than);
    if (accept("<")) return parse_bound(std::move(requirement), Operator::less_than);
    const std::string_view before = rest();
    const std::string_view name = word();
    if (name == "in") return parse_set(std::move(requirement), Operator::in);
    if (name == "notin") return parse_set(std::move(requirement), Operator::not_in);
    return failure(fmt::format("expected an operator (=, ==, !=, in, notin, >, <) before '{}'", before));
  }

  // A missing value is the empty string, as in "app=".
  Result<Requirement> parse_value(Requirement requirement, Operator op) {
    requirement.op = op;
    requirement.values.emplace_back(word());
    return checked(std::move(requirement));
  }

  Result<Requirement> parse_bound(Requirement requirement, Operator op) {
    requirement.op = op;
    requirement.values.emplace_back(word());
    if (!parse_number<std::int64_t>(requirement.values.front())) {
      return failure(fmt::format("'{}' is compared with '{}', which is not an integer", requirement.key,
                                 requirement.values.front()));
    }
    return requirement;
  }

  Result<Requirement> parse_set(Requirement requirement, Operator op) {
    requirement.op = op;
    if (!accept("(")) return failure(fmt::format("expected '(' after the operator of '{}'", requirement.key));
    if (accept(")")) return failure(fmt::format("the set of values of '{}' is empty", requirement.key));
    do {
      requirement.values.emplace_back(word());
    } while (accept(","));
    if (!accept(")")) {
      return failure(at_end() ? "expected ')' at the end" : fmt::format("expected ')' before '{}'", rest()));
    }
    return checked(std::move(requirement));
  }

  Result<Requirement> checked(Requirement requirement) const {
    for (const auto& value : requirement.values) {
      if (!value.empty() && !is_label_name(value)) return failure(fmt::format("'{}' is not a label value", value));
    }
    return requirement;
  }

  Error failure(std::string_view what) const {
    return Error(Errc::invalid, fmt::format("label selector \"{}\": {}", text_, what));
  }

  void skip_blanks() {
    while (!at_end() && std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos) ++position_;
  }
  bool at_end() const { return position_ == text_.size(); }
  char peek() const { return text_[position_]; }
  std::string_view rest() const { return text_.substr(position_); }

  bool accept(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    position_ += token.size();
    skip_blanks();
    return true;
  }

  std::string_view word() {
    const auto begin = position_;
    while (!at_end() && std::string_view(" \t\r\n,()=!<>").find(peek()) == std::string_view::npos) ++position_;
    const auto found = text_.substr(begin, position_ - begin);
    skip_blanks();
    return found;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

bool is_label_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name) return false;
  if (!is_alphanumeric(name.front()) || !is_alphanumeric(name.back())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool LabelSelector::matches(const std::map<std::string, std::string>& labels) const {
  return matches([&labels](const std::string& key) {
    const auto label = labels.find(key);
    return label == labels.end() ? nullptr : &label->second;
  });
}

bool LabelSelector::matches(const ValueOf& value_of) const {
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return holds(requirement, value_of); });
}

Result<LabelSelector> parse_label_selector(std::string_view text) {
  return Parser(text).parse();
}

std::string to_string(const LabelSelector& selector) {
  std::string text;
  for (const auto& [key, op, values] : selector.requirements()) {
    const std::string all = fmt::format("({})", fmt::join(values, ","));
    const std::string_view first = values.empty() ? std::string_view() : std::string_view(values.front());
    if (!text.empty()) text += ",";
    switch (op) {
      case Operator::in:
        text += values.size() == 1 ? fmt::format("{}={}", key, first) : fmt::format("{} in {}", key, all);
        break;
      case Operator::not_in: text += fmt::format("{} notin {}", key, all); break;
      case Operator::exists: text += key; break;
      case Operator::does_not_exist: text += "!" + key; break;
      case Operator::greater_than: text += fmt::format("{}>{}", key, first); break;
      case Operator::less_than: text += fmt::format("{}<{}", key, first); break;
    }
  }
  return text;
}

}  // namespace haulout::k8s
