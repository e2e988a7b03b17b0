// Formats text for people (cuts, wraps, joins and counts), and reads the words and numbers that people write. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace haulout {

// Makes text from outside safe for terminals and JSON. Replaces each control character (such as an escape or a line
// break) by a space, and each byte that is not UTF-8 by U+FFFD.
std::string printable(std::string_view text);
// Returns how many columns UTF-8 text takes on a terminal, by the C library's table: a wide character takes two, a
// combining one none. Without that table (no locale C.UTF-8), each character counts as one column.
std::size_t columns(std::string_view text);
// Cuts the text to at most `width` columns. A text that was cut ends in "…", or in "..." if `utf8` is false.
std::string clipped(std::string_view text, std::size_t width, bool utf8 = true);
// Cuts the text to at most `most` characters, whatever columns they take. For API objects and other limits on size.
std::string shortened(std::string_view text, std::size_t most);
// Breaks the text at spaces into lines of at most `width` columns. A longer word gets a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);
// Removes the subject, and "is" after it, from the front of a message that is shown next to the subject: "pod a/b is
// blocked" becomes "blocked".
std::string without_subject(std::string_view message, std::string_view subject);
// Appends spaces up to `width` columns.
std::string padded(std::string_view text, std::size_t width);
std::string joined(const std::vector<std::string>& parts, std::string_view separator);
// Returns the first five names and the number of the others: "a, b, c, d, e and 7 more".
std::string some_of(const std::vector<std::string>& names);
// Escapes the text for a cell of a table in Markdown: each "|" gets a backslash.
std::string markdown_cell(std::string_view text);
// Returns the number and the noun, which gets an "s" unless the number is 1: "1 pod", "2 pods".
std::string count_of(std::size_t n, std::string_view thing);

// Parses a number, by default a decimal one. Returns nullopt unless the whole text is the number and T has its value.
// White space, a "+" and, for an unsigned T, a "-" are not accepted. A floating T also accepts what std::from_chars
// does ("1e3", "inf", "nan"), and ignores `base`.
template <class T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T number{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>)
    read = std::from_chars(begin, end, number);
  else
    read = std::from_chars(begin, end, number, base);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}
// Parses the words that Go's strconv.ParseBool accepts; returns nullopt for any other.
std::optional<bool> parse_bool(std::string_view text);

// Returns the number of insertions, deletions and substitutions of bytes that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Finds the known word that is most similar to a misspelt one, for "did you mean …" in error messages.
// Returns the known word with the smallest edit distance to `typed`; the first one if several have it. Ignores words
// that differ too much: the distance must be at most 1 if `typed` has up to three bytes, otherwise at most 2 or a third
// of its length, whichever is more. It must also be less than the length of the known word. Returns nullopt if no word
// is left.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace haulout
