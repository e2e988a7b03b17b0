#include "k8s/codec_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "k8s/codec.hpp"

namespace haulout::k8s::codec {
namespace {

constexpr auto npos = std::string_view::npos;

// Past the closing quote of the string that begins at `begin`. A quote after an odd number of backslashes is part of
// the string.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (auto at = text.find('"', begin + 1); at != npos; at = text.find('"', at + 1)) {
    auto before = at;
    while (text[before - 1] == '\\') --before;
    if ((at - before) % 2 == 0) return at + 1;
  }
  return npos;
}

// Past the closing bracket of the object or array that begins at `at`.
std::size_t end_of_structure(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      if (at == npos) return npos;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return npos;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

// Where the structure begins that belongs to the key which ends at `at`; npos if there is none.
std::size_t structure_after_key(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  if (at == text.size() || text[at] != ':') return npos;
  at = skip_blanks(text, at + 1);
  return at < text.size() && (text[at] == '{' || text[at] == '[') ? at : npos;
}

// Puts null in the place of the dropped structures, several times faster than a parser reads over them. Knows strings
// and brackets, nothing else: what is no JSON stays none.
std::string without_dropped(std::string_view text, const std::vector<std::string_view>& dropped) {
  std::string out;
  std::size_t copied = 0;
  std::size_t at = 0;
  while ((at = text.find('"', at)) != npos) {
    const auto begin = at + 1;
    at = end_of_string(text, at);
    if (at == npos) break;
    const auto key = text.substr(begin, at - 1 - begin);
    if (std::find(dropped.begin(), dropped.end(), key) == dropped.end()) continue;
    const auto structure = structure_after_key(text, at);
    if (structure == npos) continue;
    const auto end = end_of_structure(text, structure);
    if (end == npos) break;
    out.append(text, copied, structure - copied).append("null");
    copied = at = end;
  }
  return out.append(text, copied);
}

// Builds a tree from the parser's events and remembers where it failed.
class TreeBuilder {
 public:
  bool null() { return value(nullptr); }
  bool boolean(bool flag) { return value(flag); }
  bool number_integer(Json::number_integer_t number) { return value(number); }
  bool number_unsigned(Json::number_unsigned_t number) { return value(number); }
  bool number_float(Json::number_float_t number, const std::string&) { return value(number); }
  bool string(std::string& text) { return value(std::move(text)); }
  bool binary(Json::binary_t&) { return false; }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) { return start(Json::value_t::object); }
  bool end_object() { return end(); }
  bool start_array(std::size_t) { return start(Json::value_t::array); }
  bool end_array() { return end(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    failed_at_ = position;
    return false;
  }

  std::size_t failed_at() const { return failed_at_; }
  Json take() { return std::move(root_); }

 private:
  template <class T>
  Json* put(T&& item) {
    if (open_.empty()) {
      root_ = Json(std::forward<T>(item));
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& list = parent.get_ref<Json::array_t&>();
      list.emplace_back(std::forward<T>(item));
      return &list.back();
    }
    auto& slot = parent.get_ref<Json::object_t&>()[std::move(key_)];
    slot = Json(std::forward<T>(item));
    return &slot;
  }
  template <class T>
  bool value(T&& item) {
    put(std::forward<T>(item));
    return true;
  }
  bool start(Json::value_t type) {
    open_.push_back(put(type));
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // the chain of containers being filled; an array is not grown while a child is open
  std::string key_;
  std::size_t failed_at_ = 0;
};

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

Result<Json> parse(std::string_view text, const std::vector<std::string_view>& dropped) {
  std::string kept;
  if (!dropped.empty()) {
    kept = without_dropped(text, dropped);
    text = kept;
  }
  TreeBuilder builder;
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  if (text.empty()) return decode_error("the answer is empty where JSON was expected");
  // The end of the text counts as one more character read.
  if (builder.failed_at() > text.size()) return decode_error("the answer was cut short: it ends in the middle of JSON");
  return decode_error("the answer is not JSON: " + beginning(text));
}

std::string describe(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    case Json::value_t::null: return "null";
    default: return "a number";
  }
}

Object::Object(const Json& json, std::string_view name, Problem& problem)
    : json_(&json), name_(name), problem_(&problem) {
  if (!json.is_object() && !json.is_null()) problem.note(fmt::format("{} is {}, not an object", name, describe(json)));
}

const Json* Object::find(const char* key) const {
  if (!json_->is_object()) return nullptr;
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

void Object::wrong(const char* key, const Json& found, std::string_view wanted) const {
  problem_->note(fmt::format("{}.{} is {}, not {}", name_, key, describe(found), wanted));
}

std::string Object::string(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) return {};
  if (const auto* text = found->get_ptr<const std::string*>()) return *text;
  wrong(key, *found, "a string");
  return {};
}

bool Object::boolean(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) return false;
  if (const auto* flag = found->get_ptr<const bool*>()) return *flag;
  wrong(key, *found, "a boolean");
  return false;
}

std::optional<std::int64_t> Object::integer(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* number = found->get_ptr<const Json::number_unsigned_t*>();
      number != nullptr && *number > Json::number_unsigned_t{std::numeric_limits<std::int64_t>::max()}) {
    wrong(key, *found, "a 64 bit integer");
    return std::nullopt;
  }
  if (found->is_number_integer()) return found->get<std::int64_t>();
  wrong(key, *found, "an integer");
  return std::nullopt;
}

std::int32_t Object::integer32(const char* key) const {
  const auto number = integer(key).value_or(0);
  if (number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max()) {
    return static_cast<std::int32_t>(number);
  }
  wrong(key, *find(key), "a 32 bit integer");
  return 0;
}

std::optional<WallTime> Object::time(const char* key) const {
  const auto text = string(key);
  if (text.empty()) return std::nullopt;
  const auto parsed = parse_time(text);
  if (parsed) return *parsed;
  problem_->note(fmt::format("{}.{} is '{}', not a time", name_, key, text));
  return std::nullopt;
}

std::string Object::int_or_string(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr || found->is_string()) return string(key);
  const auto number = integer(key);
  return number ? std::to_string(*number) : std::string();
}

std::map<std::string, std::string> Object::strings(const char* key) const {
  std::map<std::string, std::string> out;
  members(key, [&](const std::string& name, const Json& value) {
    if (const auto* text = value.get_ptr<const std::string*>()) {
      out.emplace_hint(out.end(), name, *text);
    } else {
      wrong(key, value, "made of strings");
    }
  });
  return out;
}

std::vector<std::string> Object::string_list(const char* key) const {
  std::vector<std::string> out;
  const Json* list = array(key);
  if (list == nullptr) return out;
  for (const auto& value : *list) {
    if (const auto* text = value.get_ptr<const std::string*>()) {
      out.push_back(*text);
    } else {
      wrong(key, value, "made of strings");
    }
  }
  return out;
}

Object Object::object(const char* key) const {
  const Json* found = find(key);
  return Object(found == nullptr ? nothing() : *found, key, *problem_);
}

const Json* Object::array(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr || found->is_array()) return found;
  wrong(key, *found, "an array");
  return nullptr;
}

Result<> check_kind(const Json& json, std::string_view kind) {
  if (!json.is_object()) return decode_error(fmt::format("asked for a {}, got {}", kind, describe(json)));
  const auto found = json.find("kind");
  if (found == json.end()) return decode_error(fmt::format("asked for a {}, got an object without kind", kind));
  if (!found->is_string()) return decode_error(fmt::format("asked for a {}, got a kind that is no string", kind));
  const auto& name = found->get_ref<const std::string&>();
  if (name == kind) return {};
  return decode_error(fmt::format("asked for a {}, got a {}", kind, name));
}

}  // namespace haulout::k8s::codec
