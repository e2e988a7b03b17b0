// Splits a line into words as a POSIX shell does, without any other processing of a shell. Pure.
//
// Blanks separate words. All characters inside '…' are literal. Inside "…" a backslash escapes ", \, $, ` and a line
// break; outside of quotes it escapes any character. An escaped line break is removed. $, *, ~, ;, |, &, <, > and # are
// ordinary characters: the function expands nothing and does not chain commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

// Errc::invalid if a quote is not closed, or if the text ends in a backslash or contains a NUL character.
Result<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace haulout::agent
