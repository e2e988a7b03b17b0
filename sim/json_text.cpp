#include "sim/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace haulout::sim {
namespace {

// Writes at the end of a string, which has room for more than what is written until the Sink is destroyed.
class Sink {
 public:
  explicit Sink(std::string& out) : out_(out), used_(out.size()) {}
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() { out_.resize(used_); }

  void put(char c) { *room(1) = c, ++used_; }
  void put(std::string_view text) {
    std::memcpy(room(text.size()), text.data(), text.size());
    used_ += text.size();
  }
  template <class Integer>
  void put_integer(Integer number) {
    constexpr std::size_t longest = std::numeric_limits<Integer>::digits10 + 2;
    char* const begin = room(longest);
    used_ += static_cast<std::size_t>(std::to_chars(begin, begin + longest, number).ptr - begin);
  }
  void put_text(const std::string& text);

 private:
  using Word = std::uint64_t;
  static constexpr Word all(unsigned char c) { return ~Word{0} / 0xff * c; }  // c in each byte
  // What eight characters have that JSON cannot write as it is, as the highest bits of bytes. Looks at eight at once,
  // because most of the time of a serialization is spent here.
  struct Special {
    Word quoted = 0;  // quotes and backslashes, which get a backslash
    Word others = 0;
    void look_at(Word word) {
      // The highest bit of a byte is set if the byte is zero. After such a byte, others may be set, too.
      const auto zeros = [](Word bytes) { return (bytes - all(1)) & ~bytes & all(0x80); };
      quoted |= zeros(word ^ all('"')) | zeros(word ^ all('\\'));
      others |= (word & all(0x80)) | ((word - all(' ')) & ~word & all(0x80)) | zeros(word ^ all(0x7f));
    }
  };
  // Copies the text to `to`, and returns what it has.
  static Special copy(char* to, std::string_view text) {
    Special special;
    const auto copy_word = [&](std::size_t place) {
      Word word = 0;
      std::memcpy(&word, text.data() + place, sizeof word);
      std::memcpy(to + place, &word, sizeof word);
      special.look_at(word);
    };
    if (text.size() >= sizeof(Word)) {
      for (std::size_t place = 0; place + sizeof(Word) <= text.size(); place += sizeof(Word)) copy_word(place);
      copy_word(text.size() - sizeof(Word));  // the rest, and perhaps characters before it once more
      return special;
    }
    Word rest = all(' ');
    for (std::size_t place = 0; place < text.size(); ++place) {
      to[place] = text[place];
      rest = rest << 8U | static_cast<unsigned char>(text[place]);
    }
    special.look_at(rest);
    return special;
  }
  // Returns where the next character goes; there is room for so many.
  char* room(std::size_t bytes) {
    if (out_.size() - used_ < bytes) out_.resize(std::max(out_.capacity(), 2 * (used_ + bytes)));
    return out_.data() + used_;
  }

  std::string& out_;
  std::size_t used_;
};

void Sink::put_text(const std::string& text) {
  char* place = room(2 * text.size() + 2);
  const Special special = copy(place + 1, text);
  if (special.others != 0) return put(std::string_view(Json(text).dump()));
  *place++ = '"';
  if (special.quoted == 0) {
    place += text.size();
  } else {
    for (const char c : text) {
      if (c == '"' || c == '\\') *place++ = '\\';
      *place++ = c;
    }
  }
  *place++ = '"';
  used_ = static_cast<std::size_t>(place - out_.data());
}

void append(Sink& sink, const Json& value);

// Writes the members that `wanted` wants.
template <class Wanted>
void append_members(Sink& sink, const Json& object, Wanted wanted) {
  sink.put('{');
  bool first = true;
  for (const auto& [key, member] : object.get_ref<const Json::object_t&>()) {
    if (!wanted(key.view())) continue;
    if (!std::exchange(first, false)) sink.put(',');
    sink.put_text(key);
    sink.put(':');
    append(sink, member);
  }
  sink.put('}');
}

void append(Sink& sink, const Json& value) {
  char before = '[';
  switch (value.type()) {
    case Json::value_t::object: append_members(sink, value, [](std::string_view) { return true; }); break;
    case Json::value_t::array:
      for (const Json& item : value.get_ref<const Json::array_t&>()) {
        sink.put(before);
        append(sink, item);
        before = ',';
      }
      sink.put(std::string_view(value.empty() ? "[]" : "]"));
      break;
    case Json::value_t::string: sink.put_text(value.get_ref<const std::string&>()); break;
    case Json::value_t::number_integer: sink.put_integer(value.get<std::int64_t>()); break;
    case Json::value_t::number_unsigned: sink.put_integer(value.get<std::uint64_t>()); break;
    case Json::value_t::boolean: sink.put(std::string_view(value.get<bool>() ? "true" : "false")); break;
    default: sink.put(std::string_view(value.dump()));
  }
}

}  // namespace

void append_json(std::string& out, const Json& value) {
  Sink sink(out);
  append(sink, value);
}

std::string json_text(const Json& value) {
  constexpr std::size_t usual = 1500;  // bytes of a small pod
  std::string text;
  text.reserve(usual);
  append_json(text, value);
  text.shrink_to_fit();
  return text;
}

std::string item_text(const Json& object) {
  std::string text;
  {
    Sink sink(text);
    append_members(sink, object, [](std::string_view name) { return name != "kind" && name != "apiVersion"; });
  }
  text.shrink_to_fit();
  return text;
}

}  // namespace haulout::sim
