#include "k8s/yaml_scalar.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <map>

namespace haulout::k8s {
namespace {

std::optional<std::string> constant(std::string_view text) {
  static const std::map<std::string_view, std::string_view> words = [] {
    std::map<std::string_view, std::string_view> table;
    for (const auto* word : {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
      table[word] = "true";
    for (const auto* word : {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
      table[word] = "false";
    for (const auto* word : {"", "~", "null", "Null", "NULL"}) table[word] = "null";
    return table;
  }();
  const auto found = words.find(text);
  if (found == words.end()) return std::nullopt;
  return std::string(found->second);
}

// Converts digits with an optional prefix for the base. A leading 0 means octal, as in YAML 1.1.
std::optional<std::string> integer(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = text[1] == 'x' || text[1] == 'X' ? 16 : text[1] == 'b' || text[1] == 'B' ? 2 : 8;
    const bool prefixed = base != 8 || text[1] == 'o' || text[1] == 'O';
    text.remove_prefix(prefixed ? 2 : 1);
  }
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (negative && value > (std::uint64_t{1} << 63)) return std::nullopt;
  return fmt::format("{}{}", negative && value != 0 ? "-" : "", value);
}

std::size_t digits(std::string_view text, std::size_t from) {
  std::size_t count = 0;
  while (from + count < text.size() && text[from + count] >= '0' && text[from + count] <= '9') ++count;
  return count;
}

std::optional<std::string> floating(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::size_t whole = digits(text, at);
  at += whole;
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = digits(text, ++at);
    at += fraction;
  }
  if (whole + fraction == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const std::size_t exponent = digits(text, at);
    if (exponent == 0) return std::nullopt;
    at += exponent;
  }
  if (at != text.size()) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  // JSON writes the negative zero as -0, which YAML reads as the integer 0.
  return fmt::format("{}", value == 0 ? 0.0 : value);
}

bool is_not_finite(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN";
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  return out + '"';
}

std::optional<std::string> plain_scalar_json(const std::string& text) {
  if (auto word = constant(text)) return word;
  if (is_not_finite(text)) return std::nullopt;
  const char first = text[0];
  if ((first >= '0' && first <= '9') || first == '-' || first == '+') {
    std::string plain = text;
    std::erase(plain, '_');
    if (auto number = integer(plain)) return number;
    if (auto number = floating(plain)) return number;
  } else if (first == '.') {
    if (auto number = floating(text)) return number;
  }
  return json_string(text);
}

}  // namespace haulout::k8s
