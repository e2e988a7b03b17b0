#include "base/plain_text.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace haulout {
namespace {

constexpr std::string_view ellipsis = "…";

bool is_blank(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  // Terminals interpret U+0080 to U+009F as control characters, like the control characters of ASCII.
  const bool c1 = byte == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return byte <= 0x20 || byte == 0x7F || c1;
}

}  // namespace

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

std::string first_line(std::string_view text, std::size_t limit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line = one_line(text.substr(0, end), limit);
    if (!line.empty()) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
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
