#include "k8s/codec_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <utility>

#include "k8s/codec.hpp"

namespace haulout::k8s::codec {
namespace {

// Limit for the nesting of an answer. No object of the API comes near it. It bounds the recursion that a server can
// cause.
constexpr std::size_t deepest = 256;

// Builds a tree from what the parser reads, without the dropped objects and arrays, and counts its values.
class Builder {
 public:
  // The parser asks for these limits. The length of the answer is limited already.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  Builder(boost::json::storage_ptr memory, const std::vector<std::string_view>& dropped) : dropped_(dropped) {
    stack_.reset(std::move(memory));
  }
  Json release() { return stack_.release(); }
  bool is_too_large() const { return values_ > most_values; }

  using Ec = boost::system::error_code;
  using Text = boost::json::string_view;
  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec& failure) { return begin(failure); }
  bool on_array_begin(Ec& failure) { return begin(failure); }
  bool on_object_end(std::size_t members, Ec&) {
    return end([&] { stack_.push_object(members); });
  }
  bool on_array_end(std::size_t items, Ec&) {
    return end([&] { stack_.push_array(items); });
  }
  bool on_key_part(Text part, std::size_t, Ec&) {
    key_has_parts_ = true;
    if (within_dropped_ == 0) stack_.push_chars(part);
    return true;
  }
  bool on_key(Text key, std::size_t, Ec&) {
    if (within_dropped_ == 0) {
      // A key comes in parts if it has an escaped character. No key of the API has one.
      drop_next_ = !key_has_parts_ && std::find(dropped_.begin(), dropped_.end(), key) != dropped_.end();
      stack_.push_key(key);
    }
    key_has_parts_ = false;
    return true;
  }
  bool on_string_part(Text part, std::size_t, Ec&) {
    if (within_dropped_ == 0) stack_.push_chars(part);
    return true;
  }
  bool on_string(Text text, std::size_t, Ec& failure) {
    return scalar(failure, [&] { stack_.push_string(text); });
  }
  bool on_number_part(Text, Ec&) { return true; }
  bool on_int64(std::int64_t number, Text, Ec& failure) {
    return scalar(failure, [&] { stack_.push_int64(number); });
  }
  bool on_uint64(std::uint64_t number, Text, Ec& failure) {
    return scalar(failure, [&] { stack_.push_uint64(number); });
  }
  bool on_double(double number, Text, Ec& failure) {
    return scalar(failure, [&] { stack_.push_double(number); });
  }
  bool on_bool(bool flag, Ec& failure) {
    return scalar(failure, [&] { stack_.push_bool(flag); });
  }
  bool on_null(Ec& failure) {
    return scalar(failure, [&] { stack_.push_null(); });
  }
  bool on_comment_part(Text, Ec&) { return true; }
  bool on_comment(Text, Ec&) { return true; }

 private:
  // Counts a value. Ends the parser if there are too many.
  bool count(Ec& failure) {
    ++values_;
    if (is_too_large()) failure = boost::json::error::exception;
    return !is_too_large();
  }
  bool begin(Ec& failure) {
    if (within_dropped_ > 0 || std::exchange(drop_next_, false)) {
      ++within_dropped_;
      return true;
    }
    return count(failure);
  }
  template <class Push>
  bool end(Push push) {
    if (within_dropped_ == 0) {
      push();
    } else if (--within_dropped_ == 0) {
      stack_.push_null();
    }
    return true;
  }
  template <class Push>
  bool scalar(Ec& failure, Push push) {
    if (within_dropped_ > 0) return true;
    drop_next_ = false;
    push();
    return count(failure);
  }

  const std::vector<std::string_view>& dropped_;
  boost::json::value_stack stack_;
  std::size_t values_ = 0;
  std::size_t within_dropped_ = 0;  // depth below the dropped object or array; 0 outside
  bool drop_next_ = false;          // the key of the next value is one of the dropped keys
  bool key_has_parts_ = false;
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

Result<Document> parse(std::string_view text, const std::vector<std::string_view>& dropped) {
  if (text.empty()) return decode_error("the answer is empty where JSON was expected");
  auto memory = std::make_unique<boost::json::monotonic_resource>(text.size());
  boost::json::basic_parser<Builder> parser({.max_depth = deepest}, memory.get(), dropped);
  boost::system::error_code failure;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), failure);
  if (!failure && read < text.size()) failure = boost::json::error::extra_data;
  if (!failure) return Document(std::move(memory), parser.handler().release());
  if (parser.handler().is_too_large())
    return Error(Errc::protocol, fmt::format("the answer has more than {} JSON values", most_values));
  if (failure == boost::json::error::incomplete)
    return decode_error("the answer was cut short: it ends in the middle of JSON");
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
  if (object == nullptr) return decode_error(fmt::format("asked for a {}, got {}", kind, describe(json)));
  const Json* found = object->if_contains("kind");
  if (found == nullptr) return decode_error(fmt::format("asked for a {}, got an object without kind", kind));
  const auto* name = found->if_string();
  if (name == nullptr) return decode_error(fmt::format("asked for a {}, got a kind that is no string", kind));
  if (std::string_view(name->data(), name->size()) == kind) return {};
  return decode_error(fmt::format("asked for a {}, got a {}", kind, name->c_str()));
}

}  // namespace haulout::k8s::codec
