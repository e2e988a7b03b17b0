// Converts text from files and other programs to one line for a label, a log or an API object. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout {

// Default limit in bytes; a longer reason is hard to read.
inline constexpr std::size_t line_limit = 200;

// Replaces each run of blanks and control characters by one space, and removes those at both ends. Replaces a byte that
// is not UTF-8 by "?". The result has at most `limit` bytes; a longer text is cut between two characters and ends in
// "…".
std::string one_line(std::string_view text, std::size_t limit = line_limit);

// The first and the last line that is not blank, converted by one_line(). Empty if there is no such line.
std::string first_line(std::string_view text, std::size_t limit = line_limit);
std::string last_line(std::string_view text, std::size_t limit = line_limit);

}  // namespace haulout
