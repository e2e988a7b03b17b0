// Small text tools for what people read. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout {

// Foreign text for terminals and JSON: control characters (escapes, line breaks) become blanks, broken UTF-8 U+FFFD.
std::string printable(std::string_view text);
// Columns that UTF-8 text takes on a terminal, by the C library's table: wide characters two, combining ones none.
// Where it has no table (no C.UTF-8 locale), one for each character.
std::size_t columns(std::string_view text);
// At most `width` columns; what is cut off is shown by "…" (or "..." without `utf8`).
std::string clipped(std::string_view text, std::size_t width, bool utf8 = true);
// The same by characters, whatever columns they take, for those who count bytes.
std::string shortened(std::string_view text, std::size_t most);
// At blanks, into lines of at most `width` columns; a longer word keeps a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);
// A message about `subject` that stands beside the subject: "pod a/b is blocked" becomes "blocked".
std::string without_subject(std::string_view message, std::string_view subject);
std::string padded(std::string_view text, std::size_t width);
std::string joined(const std::vector<std::string>& parts, std::string_view separator);
// The first five, and how many more: "a, b and 7 more".
std::string some_of(const std::vector<std::string>& names);
// "1 pod", "2 pods".
std::string count_of(std::size_t n, std::string_view thing);

// The words that Go's strconv.ParseBool knows; nothing for any other.
std::optional<bool> parse_bool(std::string_view text);

}  // namespace haulout
