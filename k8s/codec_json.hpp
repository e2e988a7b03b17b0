// For the codec files only: parses text into a JSON tree, and reads trees with checks of the types of fields. Pure.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s::codec {

// Boost.JSON reads the server's answers several times faster than nlohmann_json, with a fraction of the allocations.
// Requests are small and are written with nlohmann_json.
using Json = boost::json::value;

// Owns a JSON tree and the memory in which it lives; that memory is freed as a whole. Dereferences to the root of the
// tree.
class Document {
 public:
  Document(std::unique_ptr<boost::json::monotonic_resource> memory, Json root)
      : memory_(std::move(memory)), root_(std::move(root)) {}
  Document(Document&&) = default;
  // Assignment would free the memory of the old tree before the tree itself.
  Document& operator=(Document&&) = delete;
  const Json& operator*() const { return root_; }
  const Json* operator->() const { return &root_; }

 private:
  std::unique_ptr<boost::json::monotonic_resource> memory_;
  Json root_;
};

// Limit for the number of values in one answer. No object of the API comes near it, and a list that exceeds it is read
// in smaller pages. A value takes about 50 bytes.
inline constexpr std::size_t most_values = 300'000;

// Fails with Errc::protocol if there are more than most_values values, otherwise with Errc::decode. Objects and arrays
// under one of the `dropped` keys, at any depth, are checked, but read as null and not counted. They are most of the
// bytes of a Pod, and no decoder reads them. Scalars under such a key (for example a label named "containers") stay.
Result<Document> parse(std::string_view text, const std::vector<std::string_view>& dropped = {});

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
  // Keeps only the entries that fit into `room`.
  std::map<std::string, std::string> strings(std::string_view key, Room room) const;
  std::vector<std::string> string_list(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Returns an empty object if the key is absent.
  Object object(std::string_view key) const;
  // Returns nullptr if the key is absent or its value is null.
  const Json* find(std::string_view key) const;

  // Calls visit(Object) for each member of an array of objects.
  template <class Visit>
  void each(std::string_view key, Visit visit) const {
    const Json* list = array(key);
    if (list == nullptr) return;
    for (const Json& item : list->get_array()) visit(Object(item, key, *problem_));
  }
  // Calls visit(string_view key, Json) for each member of an object.
  template <class Visit>
  void members(std::string_view key, Visit visit) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_object()) return wrong(key, *found, "an object");
    for (const auto& member : found->get_object())
      visit(std::string_view(member.key().data(), member.key().size()), member.value());
  }

 private:
  const Json* array(std::string_view key) const;
  void wrong(std::string_view key, const Json& found, std::string_view wanted) const;

  const Json* json_;
  std::string_view name_;
  Problem* problem_;
};

Error decode_error(std::string message);
// Fails with "asked for a PodList, got …" unless the object has this kind.
Result<> check_kind(const Json& json, std::string_view kind);
// Converts a Status object to an Error.
Error error_of(const Json& status);

}  // namespace haulout::k8s::codec
