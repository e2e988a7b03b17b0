// Text from files and programs, made fit for one line of a label, a log or an object of the API. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout {

// As long as a reason may be and still be read.
inline constexpr std::size_t line_limit = 200;

// Runs of blanks and control characters become one blank, those at both ends go, a byte that is no UTF-8 becomes "?".
// At most `limit` bytes; what is longer is cut between two characters and ends in "…".
std::string one_line(std::string_view text, std::size_t limit = line_limit);

// The first and the last line that is not blank, so treated; empty if there is none.
std::string first_line(std::string_view text, std::size_t limit = line_limit);
std::string last_line(std::string_view text, std::size_t limit = line_limit);

}  // namespace haulout
