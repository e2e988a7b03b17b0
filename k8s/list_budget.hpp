// How much of a collection is read at most. Others fill what an agent lists: a stolen node writes Leases and its own
// Node, a tenant makes pods and budgets. None of them may fill the agent's memory, so each answer is bounded in bytes
// (a page that is longer is asked for in smaller ones), each object in what is kept of it (codec_objects.cpp), and the
// whole collection here. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"
#include "k8s/requests.hpp"

namespace haulout::k8s {

// Of any answer of the API server. It takes no object beyond 3 MB, and etcd keeps none beyond 1.5 MB.
inline constexpr std::size_t longest_answer = std::size_t{4} * 1024 * 1024;

// Of the labels of a Node so many, and so many bytes of them, are kept, and as many of those that begin with ours.
inline constexpr std::size_t most_labels = 1000;
inline constexpr std::size_t longest_labels = std::size_t{64} * 1024;
// Some of them may not have been kept.
bool labels_may_be_cut(const Node& node);

struct ListSize {
  std::size_t items = 0;
  std::size_t read = 0;  // bytes of JSON
  std::size_t kept = 0;  // bytes of text in the decoded objects
};

struct ListBudget {
  std::size_t items = 0;
  std::size_t read = 0;  // 0: as many as come, since most of them are not kept
  std::size_t kept = 0;  // whatever the number of objects is, and
  std::size_t kept_each = 0;
};

// Far beyond what a cluster of 5,000 nodes has.
ListBudget budget_of(Resource resource);
// What is too much, in words: "10000 objects", "32 MB".
std::optional<std::string> excess(const ListBudget& budget, const ListSize& size);

std::size_t text_in(const Pod& pod);
std::size_t text_in(const Node& node);
std::size_t text_in(const PodDisruptionBudget& budget);
std::size_t text_in(const VolumeAttachment& attachment);
std::size_t text_in(const Lease& lease);
std::size_t text_in(const ConfigMap& config_map);

}  // namespace haulout::k8s
