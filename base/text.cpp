#include "base/text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <clocale>
#include <cwchar>
#include <numeric>

#include "base/plain_text.hpp"

namespace haulout {
namespace {

// Returns the locale C.UTF-8, or nullptr if the machine has none. It is created once and not freed.
locale_t utf8_locale() {
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// Returns the columns of one character on a terminal. `character` is one UTF-8 sequence, or a single invalid byte.
std::size_t columns_of(std::string_view character) {
  constexpr unsigned char first_bits[] = {0x7F, 0x1F, 0x0F, 0x07};
  if (character.size() == 1 || utf8_locale() == nullptr) return 1;
  auto code = static_cast<wchar_t>(static_cast<unsigned char>(character[0]) & first_bits[character.size() - 1]);
  for (const char c : character.substr(1)) code = (code << 6) | (static_cast<unsigned char>(c) & 0x3F);
  const locale_t before = ::uselocale(utf8_locale());
  const int width = ::wcwidth(code);
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

// Removes the first character of `text`, which must not be empty, and returns it. An invalid byte is one character.
std::string_view take_character(std::string_view& text) {
  const std::string_view character = text.substr(0, std::max<std::size_t>(utf8_sequence(text), 1));
  text.remove_prefix(character.size());
  return character;
}

// Cuts the text so that the sum of `measure` over its characters, including the appended `mark`, is at most `most`.
// A text that fits is returned unchanged. If there is only room for the mark, the result is empty.
std::string cut(std::string_view text, std::size_t most, std::string_view mark,
                std::size_t (*measure)(std::string_view)) {
  const auto measured = [measure](std::string_view rest) {
    std::size_t sum = 0;
    while (!rest.empty()) sum += measure(take_character(rest));
    return sum;
  };
  if (measured(text) <= most) return std::string(text);
  const std::size_t mark_takes = measured(mark);
  const std::size_t kept = most > mark_takes ? most - mark_takes : 0;
  std::size_t used = 0;
  std::string result;
  while (!text.empty()) {
    const std::string_view character = take_character(text);
    used += measure(character);
    if (used > kept) break;
    result += character;
  }
  return kept == 0 ? result : result.append(mark);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    const std::string_view character = length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(character[0]);
    const bool c1 = first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
    if (c1 || first < 0x20 || first == 0x7F)
      result += ' ';
    else
      result += character;
  }
  return result;
}

std::size_t columns(std::string_view text) {
  std::size_t sum = 0;
  while (!text.empty()) sum += columns_of(take_character(text));
  return sum;
}

std::string clipped(std::string_view text, std::size_t width, bool utf8) {
  return cut(text, width, utf8 ? "…" : "...", columns_of);
}

std::string shortened(std::string_view text, std::size_t most) {
  return cut(text, most, "…", [](std::string_view) { return std::size_t{1}; });
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (lines.empty() || columns(lines.back()) + 1 + columns(word) > width)
      lines.emplace_back(word);
    else
      lines.back().append(" ").append(word);
  }
  return lines;
}

std::string without_subject(std::string_view message, std::string_view subject) {
  if (!message.starts_with(subject) || !message.substr(subject.size()).starts_with(' ')) return std::string(message);
  message.remove_prefix(subject.size() + 1);
  if (message.starts_with("is ")) message.remove_prefix(3);
  return std::string(message);
}

std::string padded(std::string_view text, std::size_t width) {
  const std::size_t used = columns(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  if (names.size() <= most) return joined(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + most);
  return fmt::format("{} and {} more", joined(first, ", "), names.size() - most);
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string count_of(std::size_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::optional<bool> parse_bool(std::string_view text) {
  for (const char* word : {"1", "t", "T", "true", "TRUE", "True"})
    if (text == word) return true;
  for (const char* word : {"0", "f", "F", "false", "FALSE", "False"})
    if (text == word) return false;
  return std::nullopt;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  // A word of up to three bytes may have only one difference: with two, it has hardly anything in common.
  const std::size_t furthest = typed.size() <= 3 ? 1 : std::max<std::size_t>(2, typed.size() / 3);
  std::size_t best_distance = furthest + 1;
  for (const std::string& word : known) {
    const std::size_t distance = edit_distance(typed, word);
    if (distance >= best_distance || distance >= word.size()) continue;
    best = word;
    best_distance = distance;
  }
  return best;
}

}  // namespace haulout
