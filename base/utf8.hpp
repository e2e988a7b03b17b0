// Finds the characters of UTF-8 text, and detects bytes that are not UTF-8. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace haulout {

// Returns the length in bytes of the UTF-8 sequence at the front of `text`, which must not be empty. Returns 0 if there
// is no valid sequence: overlong, a surrogate, incomplete, or not UTF-8 at all.
std::size_t utf8_sequence(std::string_view text);

// Returns true if this is a continuation byte: any byte of a UTF-8 sequence but the first.
inline bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

}  // namespace haulout
