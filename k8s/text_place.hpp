// Converts a position in a text to line and column, for messages that must not quote the text. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace haulout::k8s {

// Returns "line 3, column 5". Both count from 1, and so does `byte`, the position at which nlohmann's parser stopped.
inline std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - line_start + 1);
}

}  // namespace haulout::k8s
