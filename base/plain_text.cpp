#include "base/plain_text.hpp"

#include <algorithm>

namespace haulout {
namespace {

constexpr std::string_view ellipsis = "…";

bool is_blank(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  // U+0080 to U+009F count as blanks, too, because terminals interpret them like the control characters of ASCII.
  const bool c1 = byte == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return byte <= 0x20 || byte == 0x7F || c1;
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool no_character = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return overlong || no_character ? 0 : length;
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string out;
  bool gap = false;
  while (!text.empty() && out.size() <= limit) {
    const std::size_t length = utf8_sequence(text);
    const std::string_view character = length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
    if (is_blank(character)) {
      gap = !out.empty();
      continue;
    }
    if (gap) out += ' ';
    gap = false;
    out += character;
  }
  if (out.size() <= limit) return out;
  std::size_t end = limit > ellipsis.size() ? limit - ellipsis.size() : 0;
  while (end > 0 && continues_character(out[end])) --end;
  return out.substr(0, end).append(limit < ellipsis.size() ? "" : ellipsis);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string first_line(std::string_view text, std::size_t limit) {
  while (!text.empty()) {
    std::string line = one_line(take_line(text), limit);
    if (!line.empty()) return line;
  }
  return {};
}

std::string last_line(std::string_view text, std::size_t limit) {
  while (!text.empty()) {
    const std::size_t end = text.rfind('\n');
    const std::size_t begin = end == std::string_view::npos ? 0 : end + 1;
    std::string line = one_line(text.substr(begin), limit);
    if (!line.empty()) return line;
    text = text.substr(0, begin == 0 ? 0 : end);
  }
  return {};
}

}  // namespace haulout
