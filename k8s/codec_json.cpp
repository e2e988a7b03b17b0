#include "k8s/codec_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "k8s/codec.hpp"

namespace haulout::k8s::codec {
namespace {

constexpr auto npos = std::string_view::npos;
// Limit for the nesting of an answer. No object of the API comes near it. It bounds the recursion that a server can
// cause.
constexpr std::size_t deepest = 256;

// Returns the position after the closing quote of the string that begins at `begin`, or npos. A quote after an odd
// number of backslashes is part of the string.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (auto at = text.find('"', begin + 1); at != npos; at = text.find('"', at + 1)) {
    auto before = at;
    while (text[before - 1] == '\\') --before;
    if ((at - before) % 2 == 0) return at + 1;
  }
  return npos;
}

// One bit for each byte of a block of 64 bytes. The lowest bit stands for the first byte.
using Bits = std::uint64_t;
constexpr std::size_t block_size = 64;

Bits where(const char* block, char wanted) {
  Bits bits = 0;
#ifdef __SSE2__
  const __m128i all = _mm_set1_epi8(wanted);
  for (unsigned at = 0; at < block_size; at += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + at));
    bits |= Bits(static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(part, all)))) << at;
  }
#else
  for (unsigned at = 0; at < block_size; ++at) bits |= Bits(block[at] == wanted) << at;
#endif
  return bits;
}

Bits lowest(Bits bits) {
  return bits & (~bits + 1);
}

// Marks the bytes that follow a backslash which is not escaped itself. `carry`: the last backslash of a block escapes
// the first byte of the next block.
Bits escaped_bytes(Bits backslashes, bool& carry) {
  Bits escaped = carry ? 1 : 0;
  carry = false;
  for (backslashes &= ~escaped; backslashes != 0;) {
    const Bits one = lowest(backslashes);
    carry = one >> (block_size - 1) != 0;
    escaped |= one << 1;
    backslashes &= ~(one | one << 1);
  }
  return escaped;
}

// Marks the bytes from each odd quote up to the next quote: the insides of strings with their opening quotes.
Bits between_pairs(Bits quotes) {
  for (unsigned width = 1; width < block_size; width *= 2) quotes ^= quotes << width;
  return quotes;
}

// Returns the position after the closing bracket of the object or array that begins at `at`, or npos. Most bytes of a
// server's answers are skipped here, so it works block by block. A bracket counts unless it is inside a string.
std::size_t end_of_structure(std::string_view text, std::size_t at) {
  std::array<char, block_size> tail{};
  std::size_t depth = 0;
  bool escape = false;
  Bits inside = 0;  // all bits are set if the block begins inside a string
  for (; at < text.size(); at += block_size) {
    const char* block = text.data() + at;
    if (text.size() - at < block_size) {
      text.copy(tail.data(), block_size, at);
      block = tail.data();
    }
    const Bits quotes = where(block, '"') & ~escaped_bytes(where(block, '\\'), escape);
    const Bits strings = between_pairs(quotes) ^ inside;
    inside = strings >> (block_size - 1) != 0 ? ~Bits(0) : 0;
    const Bits opening = (where(block, '{') | where(block, '[')) & ~strings;
    const Bits closing = (where(block, '}') | where(block, ']')) & ~strings;
    const auto closed = static_cast<std::size_t>(std::popcount(closing));
    if (closed < depth) {
      depth += static_cast<std::size_t>(std::popcount(opening)) - closed;
      continue;
    }
    for (Bits brackets = opening | closing; brackets != 0; brackets &= brackets - 1) {
      const Bits one = lowest(brackets);
      if ((opening & one) != 0) {
        ++depth;
      } else if (--depth == 0) {
        return at + static_cast<std::size_t>(std::countr_zero(one)) + 1;
      }
    }
  }
  return npos;
}

// Counts the values in a text, because each takes more memory than text: 4 MB of text can hold two million numbers,
// brackets and the like. Counts commas and opening brackets outside strings, since each value but the first comes after
// one of them.
std::size_t count_values(std::string_view text) {
  std::array<char, block_size> tail{};
  std::size_t values = 1;
  bool escape = false;
  Bits inside = 0;  // all bits are set if the block begins inside a string
  for (std::size_t at = 0; at < text.size(); at += block_size) {
    const char* block = text.data() + at;
    if (text.size() - at < block_size) {
      tail.fill(' ');
      text.copy(tail.data(), block_size, at);
      block = tail.data();
    }
    const Bits quotes = where(block, '"') & ~escaped_bytes(where(block, '\\'), escape);
    const Bits strings = between_pairs(quotes) ^ inside;
    inside = strings >> (block_size - 1) != 0 ? ~Bits(0) : 0;
    const Bits before = (where(block, ',') | where(block, '{') | where(block, '[')) & ~strings;
    values += static_cast<std::size_t>(std::popcount(before));
  }
  return values;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n')) ++at;
  return at;
}

// Returns the position of the object or array that belongs to the key which ends at `at`; npos if there is none.
std::size_t structure_after_key(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  if (at == text.size() || text[at] != ':') return npos;
  at = skip_blanks(text, at + 1);
  return at < text.size() && (text[at] == '{' || text[at] == '[') ? at : npos;
}

// Replaces the dropped objects and arrays by null, several times faster than a parser reads over them. Recognises only
// strings and brackets, so it does not notice errors inside the dropped parts. All other text stays as it is.
std::string without_dropped(std::string_view text, const std::vector<std::string_view>& dropped) {
  std::string out;
  out.reserve(text.size());
  std::size_t copied = 0;
  std::size_t at = 0;
  while ((at = text.find('"', at)) != npos) {
    const auto begin = at + 1;
    at = end_of_string(text, at);
    if (at == npos) break;
    const auto structure = structure_after_key(text, at);
    if (structure == npos) continue;
    const auto key = text.substr(begin, at - 1 - begin);
    if (std::find(dropped.begin(), dropped.end(), key) == dropped.end()) continue;
    const auto end = end_of_structure(text, structure);
    if (end == npos) break;
    out.append(text, copied, structure - copied).append("null");
    copied = at = end;
  }
  return out.append(text, copied);
}

std::string beginning(std::string_view text) {
  constexpr std::size_t shown = 60;
  std::string out;
  for (const char c : text.substr(0, shown)) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  if (text.size() > shown) out += "…";
  return out;
}

const Json& nothing() {
  static const Json null_value;
  return null_value;
}

}  // namespace

Error decode_error(std::string message) {
  return Error(Errc::decode, std::move(message));
}

Result<Document> parse(std::string_view text, const std::vector<std::string_view>& dropped) {
  if (text.empty()) return decode_error("the answer is empty where JSON was expected");
  std::string kept;
  if (!dropped.empty()) {
    kept = without_dropped(text, dropped);
    text = kept;
  }
  // Each value takes at least one byte, so shorter texts cannot exceed the limit.
  if (text.size() > most_values && count_values(text) > most_values)
    return Error(Errc::protocol, fmt::format("the answer has more than {} JSON values", most_values));
  auto memory = std::make_unique<boost::json::monotonic_resource>(text.size());
  boost::json::parser parser({}, {.max_depth = deepest});
  parser.reset(memory.get());
  boost::system::error_code failure;
  parser.write(text.data(), text.size(), failure);
  if (!failure) return Document(std::move(memory), parser.release());
  if (failure == boost::json::error::incomplete)
    return decode_error("the answer is incomplete: it ends in the middle of JSON");
  if (failure == boost::json::error::too_deep)
    return decode_error(fmt::format("the answer is JSON that is nested more than {} times", deepest));
  return decode_error("the answer is not JSON: " + beginning(text));
}

std::string describe(const Json& json) {
  switch (json.kind()) {
    case boost::json::kind::object: return "an object";
    case boost::json::kind::array: return "an array";
    case boost::json::kind::string: return "a string";
    case boost::json::kind::bool_: return "a boolean";
    case boost::json::kind::null: return "null";
    default: return "a number";
  }
}

Object::Object(const Json& json, std::string_view name, Problem& problem)
    : json_(&json), name_(name), problem_(&problem) {
  if (!json.is_object() && !json.is_null()) problem.note(fmt::format("{} is {}, not an object", name, describe(json)));
}

const Json* Object::find(std::string_view key) const {
  const auto* object = json_->if_object();
  const Json* found = object == nullptr ? nullptr : object->if_contains(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void Object::wrong(std::string_view key, const Json& found, std::string_view wanted) const {
  problem_->note(fmt::format("{}.{} is {}, not {}", name_, key, describe(found), wanted));
}

std::string Object::string(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr) return {};
  if (const auto* text = found->if_string()) return std::string(text->data(), text->size());
  wrong(key, *found, "a string");
  return {};
}

bool Object::boolean(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr) return false;
  if (const auto* flag = found->if_bool()) return *flag;
  wrong(key, *found, "a boolean");
  return false;
}

std::optional<std::int64_t> Object::integer(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* number = found->if_int64()) return *number;
  if (found->is_uint64()) {
    wrong(key, *found, "a 64 bit integer");
    return std::nullopt;
  }
  wrong(key, *found, "an integer");
  return std::nullopt;
}

std::int32_t Object::integer32(std::string_view key) const {
  const auto number = integer(key).value_or(0);
  if (number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max()) {
    return static_cast<std::int32_t>(number);
  }
  wrong(key, *find(key), "a 32 bit integer");
  return 0;
}

std::optional<WallTime> Object::time(std::string_view key) const {
  const auto text = string(key);
  if (text.empty()) return std::nullopt;
  const auto parsed = parse_time(text);
  if (parsed) return *parsed;
  problem_->note(fmt::format("{}.{} is '{}', not a time", name_, key, text));
  return std::nullopt;
}

std::string Object::int_or_string(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr || found->is_string()) return string(key);
  const auto number = integer(key);
  return number ? std::to_string(*number) : std::string();
}

std::map<std::string, std::string> Object::strings(std::string_view key) const {
  constexpr auto all = std::numeric_limits<std::size_t>::max();
  return strings(key, Room{all, all});
}

std::map<std::string, std::string> Object::strings(std::string_view key, Room room) const {
  std::map<std::string, std::string> out;
  Room favoured = room;
  members(key, [&](std::string_view name, const Json& value) {
    const auto* text = value.if_string();
    if (text == nullptr) return wrong(key, value, "made of strings");
    Room& its = !room.favoured.empty() && name.starts_with(room.favoured) ? favoured : room;
    const std::size_t bytes = name.size() + text->size();
    if (its.entries == 0 || its.bytes < bytes) return;
    --its.entries;
    its.bytes -= bytes;
    out.emplace(name, std::string_view(text->data(), text->size()));
  });
  return out;
}

std::vector<std::string> Object::string_list(std::string_view key) const {
  std::vector<std::string> out;
  const Json* list = array(key);
  if (list == nullptr) return out;
  for (const Json& value : list->get_array()) {
    if (const auto* text = value.if_string()) {
      out.emplace_back(text->data(), text->size());
    } else {
      wrong(key, value, "made of strings");
    }
  }
  return out;
}

Object Object::object(std::string_view key) const {
  const Json* found = find(key);
  return Object(found == nullptr ? nothing() : *found, key, *problem_);
}

const Json* Object::array(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr || found->is_array()) return found;
  wrong(key, *found, "an array");
  return nullptr;
}

Result<> check_kind(const Json& json, std::string_view kind) {
  const auto* object = json.if_object();
  if (object == nullptr) return decode_error(fmt::format("expected a {}, got {}", kind, describe(json)));
  const Json* found = object->if_contains("kind");
  if (found == nullptr) return decode_error(fmt::format("expected a {}, got an object without kind", kind));
  const auto* name = found->if_string();
  if (name == nullptr) return decode_error(fmt::format("expected a {}, got a kind that is not a string", kind));
  if (std::string_view(name->data(), name->size()) == kind) return {};
  return decode_error(fmt::format("expected a {}, got a {}", kind, name->c_str()));
}

}  // namespace haulout::k8s::codec
