#include "agent/gates/max_unavailable.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"

namespace haulout::agent {
namespace {

constexpr std::size_t most_digits = 6;

using Unit = MaxUnavailable::Unit;

}  // namespace

std::size_t MaxUnavailable::of(std::size_t nodes) const {
  if (unit == Unit::nodes) return value;
  if (value == 0 || nodes == 0) return 0;
  // Computed in two parts, so that no product overflows.
  const std::size_t share = nodes / 100 * value + nodes % 100 * value / 100;
  return std::max<std::size_t>(share, 1);
}

Result<MaxUnavailable> parse_max_unavailable(std::string_view text) {
  const auto wrong = [&](std::string_view cause) {
    return Error(Errc::invalid,
                 fmt::format("{}; write a number of nodes like 1, or a percentage of the pool like 25%", cause));
  };
  if (text.empty()) return wrong("it is empty");
  if (text.starts_with('-')) return wrong("it cannot be negative");
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  if (digits.empty()) return wrong("the number is missing");
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return wrong("it is not a whole number");
  if (digits.size() > most_digits) return wrong("it is too large");
  const std::size_t value = parse_number<std::size_t>(digits).value_or(0);
  if (percent && value > 100) return wrong("a percentage is at most 100%");
  return MaxUnavailable{value, percent ? Unit::percent : Unit::nodes};
}

std::string to_string(const MaxUnavailable& limit) {
  return fmt::format("{}{}", limit.value, limit.unit == Unit::percent ? "%" : "");
}

}  // namespace haulout::agent
