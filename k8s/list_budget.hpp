// Limits for the size of a collection that is read. An agent lists objects that others write: an attacker on another
// node can write Leases and the Node object of that node, and a tenant can create pods and budgets. They must not
// exhaust the agent's memory. So there are three limits. The bytes of each response are limited; a page that is longer,
// or has more JSON values than codec_json.hpp allows, is requested again in smaller pages. The part that is kept of
// each object is limited (Kind<T>::read). The whole collection is limited by Kind<T>::budget. The limits are far above
// what a cluster of 5,000 nodes has. Pure.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "k8s/kind.hpp"

namespace haulout::k8s {

// Limit for any response of the API server and any watch event, in bytes. The server accepts no object beyond 3 MB, and
// etcd stores none beyond 1.5 MB.
inline constexpr std::size_t longest_answer = std::size_t{4} * 1024 * 1024;

// Limit for the memory of each collection that an agent lists or watches, in bytes. The agent's container has 128 MiB
// (packaging/kustomize/base). 5,000 Nodes with 30 labels each take 25 MB.
inline constexpr std::size_t most_memory_of_agents = std::size_t{32} * 1024 * 1024;

struct ListSize {
  std::size_t items = 0;
  std::size_t read = 0;    // bytes of JSON
  std::size_t kept = 0;    // bytes of text in the decoded objects
  std::size_t memory = 0;  // approximate memory of the decoded objects, in bytes
};

// Describes the limit that is exceeded: "10000 objects", "32 MB". Returns nullopt if none is exceeded. A `most_memory`
// of 0 sets no limit for the memory.
inline std::optional<std::string> excess(const ListBudget& budget, const ListSize& size, std::size_t most_memory) {
  if (size.items > budget.items) return fmt::format("{} objects", budget.items);
  if (budget.read != 0 && size.read > budget.read) return fmt::format("{} MB", budget.read / megabytes(1));
  const std::size_t room = budget.kept + size.items * budget.kept_each;
  if (size.kept > room) return fmt::format("{} MB of names, labels, annotations and other text", room / megabytes(1));
  if (most_memory != 0 && size.memory > most_memory) return fmt::format("{} MB of memory", most_memory / megabytes(1));
  return std::nullopt;
}

// Returns the number of bytes of text that are kept of an object.
template <class T>
std::size_t text_in(const T& object) {
  return Kind<T>::text_in(object);
}

// Returns the approximate memory of an object in bytes. It includes the map entries, which take most of the memory of a
// million labels without values.
template <class T>
std::size_t memory_of(const T& object) {
  constexpr std::size_t entry = 96;  // bytes that one entry of a std::map with two short strings takes
  std::size_t entries = 0;
  if constexpr (requires { object.labels; }) entries += object.labels.size();
  if constexpr (requires { object.annotations; }) entries += object.annotations.size();
  if constexpr (requires { object.finalizers; }) entries += object.finalizers.size();
  if constexpr (requires { object.data; }) entries += object.data.size();
  return sizeof(T) + entries * entry + text_in(object);
}

}  // namespace haulout::k8s
