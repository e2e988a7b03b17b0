// Formats counts of pods for messages. Pure.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>

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

}  // namespace haulout::drain
