#include "sim/selectors.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const auto part = trimmed(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

namespace {
// Returns the JSON pointer of a field label; empty if field selectors of the resource do not support it.
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
  for (const auto term : split(text)) {
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

std::optional<std::string> FieldSelector::demand(std::string_view pointer) const {
  for (const Term& term : terms_)
    if (term.pointer == pointer && !term.negated) return term.value;
  return std::nullopt;
}

bool FieldSelector::matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return (text(object, term.pointer.c_str()) == term.value) != term.negated;
  });
}

}  // namespace haulout::sim
