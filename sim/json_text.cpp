#include "sim/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace haulout::sim {
namespace {

// JSON writes such a character as it is, or with a backslash before it.
bool is_plain(char c) {
  return c >= ' ' && c < '\x7f';
}

void append_text(std::string& out, const std::string& text) {
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    out += Json(text).dump();
    return;
  }
  out += '"';
  std::string_view rest = text;
  for (auto next = rest.find_first_of("\"\\"); next != rest.npos; next = rest.find_first_of("\"\\")) {
    out += rest.substr(0, next);
    out += '\\';
    out += rest[next];
    rest.remove_prefix(next + 1);
  }
  out += rest;
  out += '"';
}

template <class Integer>
void append_integer(std::string& out, Integer number) {
  char digits[std::numeric_limits<Integer>::digits10 + 2];
  out.append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
}

}  // namespace

void append_json(std::string& out, const Json& value) {
  char before = '{';
  switch (value.type()) {
    case Json::value_t::object:
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
        out += before;
        append_text(out, key);
        out += ':';
        append_json(out, member);
        before = ',';
      }
      out += value.empty() ? "{}" : "}";
      break;
    case Json::value_t::array:
      before = '[';
      for (const Json& item : value.get_ref<const Json::array_t&>()) {
        out += before;
        append_json(out, item);
        before = ',';
      }
      out += value.empty() ? "[]" : "]";
      break;
    case Json::value_t::string: append_text(out, value.get_ref<const std::string&>()); break;
    case Json::value_t::number_integer: append_integer(out, value.get<std::int64_t>()); break;
    case Json::value_t::number_unsigned: append_integer(out, value.get<std::uint64_t>()); break;
    default: out += value.dump();
  }
}

std::string json_text(const Json& value) {
  constexpr std::size_t usual = 1500;  // bytes of a small pod
  std::string text;
  text.reserve(usual);
  append_json(text, value);
  text.shrink_to_fit();
  return text;
}

}  // namespace haulout::sim
