#include "k8s/label_selector.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

using Operator = k8s::LabelSelector::Operator;

std::string written(const k8s::LabelSelector::Requirement& requirement) {
  const std::string values = fmt::format("({})", fmt::join(requirement.values, ","));
  switch (requirement.op) {
    case Operator::in:
      return values == "()" ? requirement.key + "=" : requirement.key + " in " + values;  // "()" is not a valid set
    case Operator::not_in: return values == "()" ? requirement.key + "!=" : requirement.key + " notin " + values;
    case Operator::exists: return requirement.key;
    case Operator::does_not_exist: return "!" + requirement.key;
    case Operator::greater_than: return requirement.key + ">" + requirement.values.at(0);
    case Operator::less_than: return requirement.key + "<" + requirement.values.at(0);
  }
  return "";
}

}  // namespace

static void one(std::string_view input) {
  const auto selector = k8s::parse_label_selector(input);
  if (!selector) return must(!selector.error().message().empty(), "an error says what it is");
  must(!selector->empty() || selector->matches(std::map<std::string, std::string>()),
       "no requirement matches everything");
  std::string text;
  for (const auto& requirement : selector->requirements()) {
    must(!requirement.key.empty(), "a requirement is about a key");
    text += (text.empty() ? "" : ",") + written(requirement);
  }
  const auto again = k8s::parse_label_selector(text);
  must(again && *again == *selector, "what is written is read again");
}

static const Target target("label_selector", one);

}  // namespace haulout::fuzz
