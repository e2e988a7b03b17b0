#include "agent/backends/sentinel.hpp"

#include <fmt/format.h>

#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {
constexpr std::size_t beginning = std::size_t{4} * 1024;
}

Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name) {
  if (!content) return {.need = Need::unknown, .problem = content.error().message()};
  if (!*content) return {.need = Need::no};
  std::string reason = first_line(**content);
  if (reason.empty()) reason = fmt::format("{} exists", name);
  return {.need = Need::yes, .reasons = {std::move(reason)}};
}

Pending read_sentinel(const HostRoot& root, const std::string& path) {
  return sentinel_answer(root.read(path, beginning), root.display(path));
}

Pending either(Pending first, Pending second) {
  if (first.need != Need::yes && second.need == Need::yes) return second;
  if (first.need == Need::yes && second.need == Need::yes)
    first.reasons.insert(first.reasons.end(), second.reasons.begin(), second.reasons.end());
  if (first.need == Need::no && second.need == Need::unknown) return second;
  return first;
}

}  // namespace haulout::agent
