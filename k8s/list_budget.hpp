// How much of a collection is read at most. Others fill what an agent lists: a stolen node writes Leases and its own
// Node, a tenant makes pods and budgets. None of them may fill the agent's memory, so each answer is bounded in bytes
// (a page that is longer, or has more JSON values than codec_json.hpp allows, is asked for in smaller ones), each
// object in what is kept of it (codec_objects.cpp), and the whole collection here. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"
#include "k8s/requests.hpp"

namespace haulout::k8s {

// Of any answer of the API server, and any event of a watch. It takes no object beyond 3 MB, and etcd keeps none
// beyond 1.5 MB.
inline constexpr std::size_t longest_answer = std::size_t{4} * 1024 * 1024;

// Of the labels of a Node so many, and so many bytes of them, are kept, and as many of those that begin with ours.
inline constexpr std::size_t most_labels = 1000;
inline constexpr std::size_t longest_labels = std::size_t{64} * 1024;
// Some of them may not have been kept.
bool labels_may_be_cut(const Node& node);

// Of each collection that an agent lists or watches; its container has 128 MiB (packaging/kustomize/base). 5,000 Nodes
// with 30 labels each take 25 MB.
inline constexpr std::size_t most_memory_of_agents = std::size_t{32} * 1024 * 1024;

struct ListSize {
  std::size_t items = 0;
  std::size_t read = 0;    // bytes of JSON
  std::size_t kept = 0;    // bytes of text in the decoded objects
  std::size_t memory = 0;  // bytes that these take, about
};

struct ListBudget {
  std::size_t items = 0;
  std::size_t read = 0;  // 0: as many as come, since most of them are not kept
  std::size_t kept = 0;  // whatever the number of objects is, and
  std::size_t kept_each = 0;
};

// Far beyond what a cluster of 5,000 nodes has.
ListBudget budget_of(Resource resource);
// What is too much, in words: "10000 objects", "32 MB". `most_memory` 0: whatever the budget allows.
std::optional<std::string> excess(const ListBudget& budget, const ListSize& size, std::size_t most_memory);

std::size_t text_in(const Pod& pod);
std::size_t text_in(const Node& node);
std::size_t text_in(const PodDisruptionBudget& budget);
std::size_t text_in(const VolumeAttachment& attachment);
std::size_t text_in(const Lease& lease);
std::size_t text_in(const ConfigMap& config_map);

// About so many bytes of memory: of a million labels without a value the entries are most.
template <class T>
std::size_t memory_of(const T& object) {
  constexpr std::size_t entry = 96;  // a node of a map with two short strings
  std::size_t entries = 0;
  if constexpr (requires { object.labels; }) entries += object.labels.size();
  if constexpr (requires { object.annotations; }) entries += object.annotations.size();
  if constexpr (requires { object.finalizers; }) entries += object.finalizers.size();
  if constexpr (requires { object.data; }) entries += object.data.size();
  return sizeof(T) + entries * entry + text_in(object);
}

}  // namespace haulout::k8s
