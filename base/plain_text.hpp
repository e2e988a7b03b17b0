// Converts text from files and other programs to one line for a label, a log or an API object. Finds the characters of
// UTF-8 text, and detects bytes that are not UTF-8. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace haulout {

// Returns the length in bytes of the UTF-8 sequence at the front of `text`, which must not be empty. Returns 0 if there
// is no valid sequence: overlong, a surrogate, incomplete, or not UTF-8 at all.
std::size_t utf8_sequence(std::string_view text);

// Returns true if this is a continuation byte: any byte of a UTF-8 sequence but the first.
inline bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// The default of `limit` in the functions below, in bytes. A longer line is hard to read.
inline constexpr std::size_t line_limit = 200;

// Replaces each run of blanks and control characters by one space, and removes those at both ends. Replaces a byte that
// is not UTF-8 by "?". The result has at most `limit` bytes; a longer text is cut between two characters and ends in
// "…".
std::string one_line(std::string_view text, std::size_t limit = line_limit);

// Removes the first line and its line break from the text, and returns the line without the break, as it is.
std::string_view take_line(std::string_view& text);

// Return the first or the last line that is not blank, converted by one_line(). Empty if there is no such line.
std::string first_line(std::string_view text, std::size_t limit = line_limit);
std::string last_line(std::string_view text, std::size_t limit = line_limit);

}  // namespace haulout
