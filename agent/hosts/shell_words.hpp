// Splitting a line into words as a POSIX shell does, and nothing else that a shell does. Pure.
//
// Blanks separate words. '…' holds everything as it stands. Inside "…" a backslash escapes ", \, $, ` and a line break,
// elsewhere any character; an escaped line break vanishes. $, *, ~, ;, |, &, <, > and # are ordinary characters:
// nothing is expanded and nothing is chained.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

// Errc::invalid for a quote without its end, a backslash at the end, or a NUL character.
Result<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace haulout::agent
