#include "k8s/codec_json.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/plain_text.hpp"

namespace haulout::k8s::codec {
namespace {

// Limit for the nesting of a response. It bounds the recursion that a server can cause. No object of the API comes near
// it.
constexpr std::size_t deepest = 256;

// The keys of objects and arrays that are not kept. Most other keys differ from all of them in length or first
// character.
class DroppedKeys {
 public:
  explicit DroppedKeys(std::span<const std::string_view> keys) : keys_(keys) {
    for (const std::string_view key : keys) firsts_[length_of(key)] |= first_of(key);
  }
  bool has(std::string_view key) const {
    return (firsts_[length_of(key)] & first_of(key)) != 0 && std::find(keys_.begin(), keys_.end(), key) != keys_.end();
  }

 private:
  static constexpr std::size_t longest = 31;
  static std::size_t length_of(std::string_view key) { return std::min(key.size(), longest); }
  static std::uint64_t first_of(std::string_view key) {
    return key.empty() ? 0 : std::uint64_t{1} << (static_cast<unsigned char>(key.front()) % 64U);
  }

  std::span<const std::string_view> keys_;
  std::array<std::uint64_t, longest + 1> firsts_{};  // for each length, the first characters as bits
};

// Builds a tree from what the parser reads, without the dropped objects and arrays, and counts its values.
class Builder {
 public:
  // Boost.JSON requires these limits. They limit nothing here, because the length of a response is limited already.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  Builder(boost::json::storage_ptr memory, std::span<const std::string_view> dropped) : dropped_(dropped) {
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
      // The parser passes a key in parts if it has an escaped character. No key in `dropped_` has one, so the value of
      // such a key is kept.
      drop_next_ = !key_has_parts_ && dropped_.has(key);
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

  DroppedKeys dropped_;
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

// Writes JSON with nlohmann_json, which is fast enough for requests. Replaces bytes that are not UTF-8.
std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

// The members are in this order so that the memory outlives the tree.
struct Document::Tree {
  Tree(std::unique_ptr<boost::json::monotonic_resource> its_memory, Json its_root)
      : memory(std::move(its_memory)), root(std::move(its_root)) {}
  std::unique_ptr<boost::json::monotonic_resource> memory;
  Json root;
};

Document::Document(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

const Json& Document::operator*() const {
  return tree_->root;
}

Error decode_error(std::string message) {
  return Error(Errc::decode, std::move(message));
}

Result<Document> parse(std::string_view text, std::span<const std::string_view> dropped) {
  if (text.empty()) return decode_error("the answer is empty where JSON was expected");
  auto memory = std::make_unique<boost::json::monotonic_resource>(text.size());
  boost::json::basic_parser<Builder> parser({.max_depth = deepest}, memory.get(), dropped);
  boost::system::error_code failure;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), failure);
  if (!failure && read < text.size()) failure = boost::json::error::extra_data;
  if (!failure) return Document(std::make_unique<Document::Tree>(std::move(memory), parser.handler().release()));
  if (parser.handler().is_too_large())
    return Error(
        Errc::protocol,
        fmt::format("the answer has more than {} JSON values, which is the most that Haulout reads", most_values));
  if (failure == boost::json::error::incomplete)
    return decode_error("the answer is incomplete: it ends in the middle of JSON");
  if (failure == boost::json::error::too_deep)
    return decode_error(fmt::format("the answer is JSON with more than {} levels of nesting", deepest));
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
  const Json* found = find(key);
  if (found == nullptr) return out;
  if (!found->is_object()) return wrong(key, *found, "an object"), out;
  for (const auto& member : found->get_object()) {
    const std::string_view name(member.key().data(), member.key().size());
    const auto* text = member.value().if_string();
    if (text == nullptr) {
      wrong(key, member.value(), "made of strings");
      continue;
    }
    Room& its = !room.favoured.empty() && name.starts_with(room.favoured) ? favoured : room;
    const std::size_t bytes = name.size() + text->size();
    if (its.entries == 0 || its.bytes < bytes) continue;
    --its.entries;
    its.bytes -= bytes;
    out.emplace(name, std::string_view(text->data(), text->size()));
  }
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

void Object::each(std::string_view key, const std::function<void(const Object&)>& visit) const {
  const Json* list = array(key);
  if (list == nullptr) return;
  for (const Json& item : list->get_array()) visit(Object(item, key, *problem_));
}

void Object::members(std::string_view key,
                     const std::function<void(std::string_view, std::optional<std::string_view>)>& visit) const {
  const Json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_object()) return wrong(key, *found, "an object");
  for (const auto& member : found->get_object()) {
    const auto* text = member.value().if_string();
    visit(std::string_view(member.key().data(), member.key().size()),
          text == nullptr ? std::nullopt : std::optional(std::string_view(text->data(), text->size())));
  }
}

Result<> check_kind(const Json& json, std::string_view kind) {
  const auto* object = json.if_object();
  if (object == nullptr)
    return decode_error(fmt::format("expected an object of kind {}, got {}", kind, describe(json)));
  const Json* found = object->if_contains("kind");
  if (found == nullptr) return decode_error(fmt::format("expected an object of kind {}, got one without kind", kind));
  const auto* name = found->if_string();
  if (name == nullptr)
    return decode_error(fmt::format("expected an object of kind {}, got one whose kind is not a string", kind));
  if (std::string_view(name->data(), name->size()) == kind) return {};
  return decode_error(fmt::format("expected an object of kind {}, got kind {}", kind, name->c_str()));
}

Result<> check_kind_if_any(const Json& json, std::string_view kind) {
  if (json.is_object() && !json.get_object().contains("kind")) return {};
  return check_kind(json, kind);
}

Result<ListHead> read_list(const Json& list, std::string_view kind, const std::function<Result<>(const Json&)>& visit) {
  if (auto checked = check_kind(list, kind); !checked) return std::move(checked).error();
  Problem problem;
  const Object metadata = Object(list, kind, problem).object("metadata");
  ListHead head{metadata.string("resourceVersion"), metadata.string("continue")};
  if (head.resource_version.empty()) problem.note("metadata.resourceVersion is missing");
  const Json* items = list.get_object().if_contains("items");
  if (items == nullptr) problem.note("items are missing");
  if (items != nullptr && !items->is_array() && !items->is_null()) problem.note("items is not an array");
  if (!problem.text.empty()) return decode_error(fmt::format("{} is invalid: {}", kind, problem.text));
  if (items->is_null()) return head;
  for (const Json& item : items->get_array())
    if (auto visited = visit(item); !visited) return std::move(visited).error();
  return head;
}

// Most strings in requests are names or UIDs, which need no escaping and no library.
std::string quoted(std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  return plain ? fmt::format("\"{}\"", text) : dump(text);
}

Writer& Writer::raw(std::string_view key, std::string_view json) {
  members_ += fmt::format("{}{}:{}", members_.empty() ? "" : ",", quoted(key), json);
  return *this;
}

Writer& Writer::text(std::string_view key, std::string_view value) {
  return raw(key, quoted(value));
}

Writer& Writer::text_if_any(std::string_view key, std::string_view value) {
  return value.empty() ? *this : text(key, value);
}

Writer& Writer::texts_if_any(std::string_view key, const std::map<std::string, std::string>& values) {
  if (values.empty()) return *this;
  Writer out;
  for (const auto& [name, value] : values) out.text(name, value);
  return object(key, out);
}

std::string cut(const std::string& text, std::size_t limit) {
  auto sent = nlohmann::ordered_json::parse(dump(text)).get<std::string>();
  if (sent.size() <= limit) return sent;
  while (limit > 0 && continues_character(sent[limit])) --limit;
  sent.resize(limit);
  return sent;
}

}  // namespace haulout::k8s::codec

namespace haulout::k8s {
namespace {

using std::chrono::microseconds;

// Reads numbers of fixed width and single characters from the front of a text. Records a failure, which ended_well()
// reports.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int number(std::size_t digits) {
    if (rest_.size() < digits) return fail();
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!digit(rest_[i])) return fail();
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }
  void expect(std::string_view any_of) {
    if (!next_is(any_of)) {
      fail();
    } else {
      rest_.remove_prefix(1);
    }
  }
  bool next_is(std::string_view any_of) const {
    return !rest_.empty() && any_of.find(rest_.front()) != std::string_view::npos;
  }
  char take() {
    const char c = rest_.empty() ? '\0' : rest_.front();
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }
  // Reads the digits after the point. Ignores digits below a microsecond.
  microseconds fraction() {
    if (rest_.empty() || !digit(rest_.front())) fail();
    microseconds::rep value = 0;
    microseconds::rep unit = 100'000;
    for (; !rest_.empty() && digit(rest_.front()); rest_.remove_prefix(1), unit /= 10) {
      value += unit * (rest_.front() - '0');
    }
    return microseconds(value);
  }
  bool ended_well() const { return good_ && rest_.empty(); }

 private:
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  int fail() {
    good_ = false;
    return 0;
  }
  std::string_view rest_;
  bool good_ = true;
};

std::chrono::minutes scan_zone(Scanner& scanner) {
  const char sign = scanner.take();
  if (sign == 'Z' || sign == 'z') return std::chrono::minutes(0);
  const int hours = scanner.number(2);
  scanner.expect(":");
  const int minutes = scanner.number(2);
  const std::chrono::minutes offset(hours * 60 + minutes);
  return sign == '-' ? -offset : offset;
}

struct Civil {
  int year;
  unsigned month, day;
  std::int64_t hour, minute, second, micros;
};

Civil civil(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto of_day = (time - day).count();
  return {static_cast<int>(date.year()),
          static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day()),
          of_day / 3'600'000'000,
          of_day / 60'000'000 % 60,
          of_day / 1'000'000 % 60,
          of_day % 1'000'000};
}

std::optional<WallTime> scan_time(std::string_view text) {
  Scanner scanner(text);
  const int year = scanner.number(4);
  scanner.expect("-");
  const auto month = static_cast<unsigned>(scanner.number(2));
  scanner.expect("-");
  const auto day = static_cast<unsigned>(scanner.number(2));
  scanner.expect("Tt");
  const int hour = scanner.number(2);
  scanner.expect(":");
  const int minute = scanner.number(2);
  scanner.expect(":");
  const int second = scanner.number(2);
  microseconds fraction(0);
  if (scanner.next_is(".")) {
    scanner.take();
    fraction = scanner.fraction();
  }
  if (!scanner.next_is("Zz+-")) return std::nullopt;
  const auto zone = scan_zone(scanner);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  // Second 60 is a leap second: it is read as the first second of the next minute.
  if (!scanner.ended_well() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const WallTime time = WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
                        std::chrono::minutes(minute) + std::chrono::seconds(second) + fraction - zone;
  // The offset of the zone can move the time out of the years that RFC 3339 can express. Such a time is invalid.
  const auto written = civil(time).year;
  if (written < 0 || written > 9999) return std::nullopt;
  return time;
}

// Limits for times from the server. A Duration can hold the difference of any two times in this range.
constexpr WallTime earliest{std::chrono::sys_days(std::chrono::year(1900) / 1 / 1)};
constexpr WallTime latest{std::chrono::sys_days(std::chrono::year(2190) / 1 / 1)};

}  // namespace

Result<WallTime> parse_time(std::string_view text) {
  const auto time = scan_time(text);
  if (!time) return Error(Errc::decode, fmt::format("'{}' is not a time in RFC 3339", text));
  return std::clamp(*time, earliest, latest);
}

// FMT_COMPILE, because a rehearsal writes dozens of times for each pod.
std::string format_time(WallTime time) {
  const auto c = civil(time);
  return fmt::format(FMT_COMPILE("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z"), c.year, c.month, c.day, c.hour, c.minute,
                     c.second);
}

std::string format_micro_time(WallTime time) {
  const auto c = civil(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", c.year, c.month, c.day, c.hour, c.minute, c.second,
                     c.micros);
}

}  // namespace haulout::k8s
