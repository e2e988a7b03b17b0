#include "k8s/list_budget.hpp"

#include <fmt/format.h>

namespace haulout::k8s {
namespace {

constexpr std::size_t kilobyte = 1024;
constexpr std::size_t megabyte = 1024 * kilobyte;

std::size_t text_of(const std::map<std::string, std::string>& entries) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : entries) bytes += key.size() + value.size();
  return bytes;
}

// The longest label that the API accepts: prefix, slash, name and value.
constexpr std::size_t longest_label = 253 + 1 + 63 + 63;

}  // namespace

bool labels_may_be_cut(const Node& node) {
  return node.labels.size() >= most_labels || text_of(node.labels) + longest_label > longest_labels;
}

ListBudget budget_of(Resource resource) {
  switch (resource) {
    // The Lease of a slot takes less than a kilobyte, and packaging/kustomize/base/quota-slots.yaml allows 1,000 of
    // them.
    case Resource::leases: return {10'000, 32 * megabyte, 8 * megabyte, kilobyte};
    case Resource::nodes: return {20'000, 0, 16 * megabyte, 8 * kilobyte};
    case Resource::pods: return {500'000, 0, 16 * megabyte, 4 * kilobyte};
    case Resource::pod_disruption_budgets: return {100'000, 0, 16 * megabyte, kilobyte};
    case Resource::volume_attachments: return {500'000, 0, 16 * megabyte, 4 * kilobyte};
    case Resource::config_maps: return {10'000, 32 * megabyte, 16 * megabyte, kilobyte};
  }
  return {};
}

std::optional<std::string> excess(const ListBudget& budget, const ListSize& size, std::size_t most_memory) {
  if (size.items > budget.items) return fmt::format("{} objects", budget.items);
  if (budget.read != 0 && size.read > budget.read) return fmt::format("{} MB", budget.read / megabyte);
  const std::size_t room = budget.kept + size.items * budget.kept_each;
  if (size.kept > room) return fmt::format("{} MB of names, labels and the like", room / megabyte);
  if (most_memory != 0 && size.memory > most_memory) return fmt::format("{} MB of memory", most_memory / megabyte);
  return std::nullopt;
}

std::size_t text_in(const Pod& pod) {
  std::size_t bytes = text_of(pod.labels) + text_of(pod.annotations) + pod.trouble.size();
  for (const std::string& finalizer : pod.finalizers) bytes += finalizer.size();
  return bytes;
}

std::size_t text_in(const Node& node) {
  return text_of(node.labels) + text_of(node.annotations);
}

std::size_t text_in(const PodDisruptionBudget& budget) {
  std::size_t bytes = budget.condition_message.size();
  if (!budget.selector) return bytes;
  for (const auto& requirement : budget.selector->requirements()) {
    bytes += requirement.key.size();
    for (const std::string& value : requirement.values) bytes += value.size();
  }
  return bytes;
}

// Counts only the name. The error texts of a VolumeAttachment come from its CSI driver, not from a tenant.
std::size_t text_in(const VolumeAttachment& attachment) {
  return attachment.name.size();
}

std::size_t text_in(const Lease& lease) {
  return text_of(lease.labels) + lease.holder.size();
}

std::size_t text_in(const ConfigMap& config_map) {
  return text_of(config_map.data);
}

}  // namespace haulout::k8s
