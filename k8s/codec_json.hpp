// Reads and writes the JSON of the API: parses text into a tree, reads trees with checks of the types of fields, and
// writes the bodies of requests. For the decoders and encoders of this folder only. Pure.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s::codec {

// Boost.JSON is used because it parses responses several times faster than nlohmann_json, with a fraction of the
// allocations.
using Json = boost::json::value;

// Owns a JSON tree and the memory in which it lives; that memory is freed as a whole. Dereferences to the root of the
// tree.
class Document {
 public:
  struct Tree;
  explicit Document(std::unique_ptr<Tree> tree);
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();
  const Json& operator*() const;
  const Json* operator->() const { return &**this; }

 private:
  std::unique_ptr<Tree> tree_;
};

// Limit for the number of JSON values in one response. No object of the API comes near it, and a list that exceeds it
// is read in smaller pages. A value takes about 50 bytes.
inline constexpr std::size_t most_values = 300'000;

// Parses a text. Fails with Errc::protocol if it has more than most_values values, and with Errc::decode if it is not
// JSON or is nested too deep. Objects and arrays under one of the `dropped` keys, at any depth, must be correct JSON,
// but are read as null and not counted. In a Pod they are most of the bytes, and its decoder does not need them.
// Scalars under such a key (for example a label named "env") are read as usual.
Result<Document> parse(std::string_view text, std::span<const std::string_view> dropped = {});

// Describes the type of a value for messages: "an array", "a number" …
std::string describe(const Json& json);

// Collects the first error of a decoder: a field of the wrong type or an invalid value. The decoder checks it once at
// its end.
struct Problem {
  std::string text;
  void note(std::string what) {
    if (text.empty()) text = std::move(what);
  }
};

// Limits for the entries that are kept of a map of strings: their number and their total bytes. Entries are taken in
// the order in which they come. Entries whose key begins with `favoured` have separate limits of the same size.
struct Room {
  std::size_t entries = 0;
  std::size_t bytes = 0;
  std::string_view favoured{};
};

// Reads one object of a tree. An absent field and null are the same, as in the API. Notes the first field of a wrong
// type in the Problem. Borrows the tree and the Problem.
class Object {
 public:
  Object(const Json& json, std::string_view name, Problem& problem);

  std::string string(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::int32_t integer32(std::string_view key) const;
  std::optional<WallTime> time(std::string_view key) const;
  std::string int_or_string(std::string_view key) const;
  std::map<std::string, std::string> strings(std::string_view key) const;
  // Returns only the entries that fit into `room`.
  std::map<std::string, std::string> strings(std::string_view key, Room room) const;
  std::vector<std::string> string_list(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Returns an empty object if the key is absent.
  Object object(std::string_view key) const;
  // Returns nullptr if the key is absent or its value is null.
  const Json* find(std::string_view key) const;

  // Calls visit(Object) for each member of an array of objects.
  void each(std::string_view key, const std::function<void(const Object&)>& visit) const;
  // Calls visit(key, text) for each member of an object. The text is unset if the value is not a string.
  void members(std::string_view key,
               const std::function<void(std::string_view, std::optional<std::string_view>)>& visit) const;

 private:
  const Json* array(std::string_view key) const;
  void wrong(std::string_view key, const Json& found, std::string_view wanted) const;

  const Json* json_;
  std::string_view name_;
  Problem* problem_;
};

Error decode_error(std::string message);
// Fails with Errc::decode, such as "expected a PodList, got …", unless the object has this kind.
Result<> check_kind(const Json& json, std::string_view kind);
// As check_kind(), but an object without `kind` passes: the items of a list have none.
Result<> check_kind_if_any(const Json& json, std::string_view kind);
// Converts a Status object to an Error.
Error error_of(const Json& status);
struct ListHead {
  std::string resource_version;
  std::string continue_token;
};
// Calls visit(item) for each item of a list, until one fails. Returns resourceVersion and continue token. Fails with
// Errc::decode if the resourceVersion or the field `items` is missing: for an empty list, too, the server writes
// `items`, as [] or null.
Result<ListHead> read_list(const Json& list, std::string_view kind, const std::function<Result<>(const Json&)>& visit);

// Writes one JSON object, with its members in the order in which they are added. Replaces bytes that are not UTF-8,
// because names may come from the server or the command line.
class Writer {
 public:
  Writer& text(std::string_view key, std::string_view value);
  Writer& text_if_any(std::string_view key, std::string_view value);
  Writer& texts_if_any(std::string_view key, const std::map<std::string, std::string>& values);
  Writer& object(std::string_view key, const Writer& value) { return raw(key, value.str()); }
  // Adds a member whose value is the text `json`, unchanged.
  Writer& raw(std::string_view key, std::string_view json);
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

// Returns the text as a JSON string, in quotes.
std::string quoted(std::string_view text);
// Returns the text, cut at the end of a character to at most `limit` bytes. Bytes that are not UTF-8 are replaced
// first, as in a request.
std::string cut(const std::string& text, std::size_t limit);

}  // namespace haulout::k8s::codec

namespace haulout::k8s {

// Times in RFC 3339. parse_time accepts them with or without fraction, and clamps them to 1900 … 2190, so that a
// Duration can hold the difference of any two. It fails with Errc::decode. format_time writes whole seconds,
// format_micro_time six digits after the point.
Result<WallTime> parse_time(std::string_view text);
std::string format_time(WallTime time);
std::string format_micro_time(WallTime time);

}  // namespace haulout::k8s
