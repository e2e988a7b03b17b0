// For the codec files only: text to a JSON tree, and a reader of trees that notices wrong shapes. Pure.
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

// Boost.JSON reads what the server sends several times faster than nlohmann_json, in a fraction of the allocations;
// what we send is small, and written with the latter.
using Json = boost::json::value;

// A tree and the memory that it lives in, which is given back as a whole. Reads as its root.
class Document {
 public:
  Document(std::unique_ptr<boost::json::monotonic_resource> memory, Json root)
      : memory_(std::move(memory)), root_(std::move(root)) {}
  Document(Document&&) = default;
  // The old tree would outlive its memory.
  Document& operator=(Document&&) = delete;
  const Json& operator*() const { return root_; }
  const Json* operator->() const { return &root_; }

 private:
  std::unique_ptr<boost::json::monotonic_resource> memory_;
  Json root_;
};

// No object of the API comes near it, and a list that does is read in smaller pages. A value takes some 50 bytes.
inline constexpr std::size_t most_values = 300'000;

// Fails with Errc::protocol where there are more than most_values, else with Errc::decode. Objects and arrays under one
// of the `dropped` keys, at any depth, are skipped and read as null: they are most of the bytes of a Pod and nobody
// here reads them. Scalars of such a name (a label "containers") stay.
Result<Document> parse(std::string_view text, const std::vector<std::string_view>& dropped = {});

// "an array", "the number 7" …, for messages.
std::string describe(const Json& json);

// One object of a tree. Absent and null are the same, as in the API; the first field of a wrong type is remembered in
// the Problem, which the decoder looks at once at its end. Borrows tree and problem.
struct Problem {
  std::string text;
  void note(std::string what) {
    if (text.empty()) text = std::move(what);
  }
};

// How much of a map of strings is kept: so many entries, and so many bytes of them, in the order in which they come.
// Those whose key begins with `favoured` have as much room for themselves.
struct Room {
  std::size_t entries = 0;
  std::size_t bytes = 0;
  std::string_view favoured{};
};

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
  // As much of it as there is room for.
  std::map<std::string, std::string> strings(std::string_view key, Room room) const;
  std::vector<std::string> string_list(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // An absent object reads as an empty one.
  Object object(std::string_view key) const;
  // Null when absent.
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
// "asked for a PodList, got …" unless the object says it is of that kind.
Result<> check_kind(const Json& json, std::string_view kind);
// The Error that a Status object stands for.
Error error_of(const Json& status);

}  // namespace haulout::k8s::codec
