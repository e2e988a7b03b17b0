// What is UTF-8 and what is not. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace haulout {

// Length of the UTF-8 sequence at the front of `text`, which is not empty; 0: it is none (overlong, surrogate, cut off,
// no UTF-8 at all).
std::size_t utf8_sequence(std::string_view text);

// Whether this byte is a later one of a sequence.
inline bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

}  // namespace haulout
