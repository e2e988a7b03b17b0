#include "sim/json_text.hpp"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>

namespace haulout::sim {
namespace {

// What a text has that JSON cannot write as it is.
enum class Special { none, backslashes, others };  // quotes and backslashes get a backslash

// Looks at eight characters at once, because most of the time of a serialization is spent here.
Special special_of(std::string_view text) {
  using Word = std::uint64_t;
  constexpr auto all = [](unsigned char c) { return ~Word{0} / 0xff * c; };  // c in each byte
  // The highest bit of a byte is set if the byte is zero. After such a byte, others may be set, too.
  const auto zeros = [&](Word word) { return (word - all(1)) & ~word & all(0x80); };
  Word quoted = 0;
  Word others = 0;
  const auto look_at = [&](Word word) {
    quoted |= zeros(word ^ all('"')) | zeros(word ^ all('\\'));
    others |= (word & all(0x80)) | ((word - all(' ')) & ~word & all(0x80)) | zeros(word ^ all(0x7f));
  };
  for (; text.size() >= sizeof(Word); text.remove_prefix(sizeof(Word))) {
    Word word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    look_at(word);
  }
  Word rest = all(' ');
  for (const char c : text) rest = rest << 8U | static_cast<unsigned char>(c);
  look_at(rest);
  return others != 0 ? Special::others : quoted != 0 ? Special::backslashes : Special::none;
}

void append_with_backslashes(std::string& out, std::string_view text) {
  for (auto next = text.find_first_of("\"\\"); next != text.npos; next = text.find_first_of("\"\\")) {
    out += text.substr(0, next);
    out += '\\';
    out += text[next];
    text.remove_prefix(next + 1);
  }
  out += text;
}

void append_text(std::string& out, const std::string& text) {
  const Special special = special_of(text);
  if (special == Special::others) {
    out += Json(text).dump();
    return;
  }
  out += '"';
  if (special == Special::backslashes)
    append_with_backslashes(out, text);
  else
    out += text;
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
