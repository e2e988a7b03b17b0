// Where something stands in a text, for messages that may not quote it. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace haulout::k8s {

// "line 3, column 5": both from 1, as is `byte`, which is where nlohmann's parser stopped.
inline std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - line_start + 1);
}

}  // namespace haulout::k8s
