#include "agent/hosts/plain_text.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view ellipsis = "…";

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// How many bytes the character at the start of `text` takes; 0 when it is no UTF-8 (RFC 3629: the shortest form, no
// surrogates, nothing above U+10FFFF).
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool too_high = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

bool is_blank(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  // U+0080 to U+009F move a terminal's cursor as the ASCII controls do.
  const bool c1 = byte == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return byte <= 0x20 || byte == 0x7F || c1;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t limit) {
  std::string out;
  bool gap = false;
  while (!text.empty() && out.size() <= limit) {
    const std::size_t length = character_length(text);
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
  while (end > 0 && continues(out[end])) --end;
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

}  // namespace haulout::agent
