// Classes of ASCII characters. They do not depend on the locale, as those of <cctype> do. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout {

constexpr bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Returns the text with ASCII letters in lower case. Other bytes stay as they are.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace haulout
