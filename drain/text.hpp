// Formats counts of pods for messages, and parses whole numbers. Pure.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace haulout::drain {

// Formats a number of pods: "1 pod", "3 pods".
template <std::integral Count>
std::string pods(Count count) {
  return fmt::format("{} pod{}", count, count == 1 ? "" : "s");
}

// Formats the first of `all` pods and the number of the others: "pod shop/web-0", "pod shop/web-0 and 3 more".
inline std::string one_of(const std::string& first, std::size_t all) {
  return fmt::format("pod {}{}", first, all == 1 ? "" : fmt::format(" and {} more", all - 1));
}

// Parses a decimal number. Returns nullopt unless the whole text is the number.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = failure == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace haulout::drain
