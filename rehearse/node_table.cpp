#include "rehearse/node_table.hpp"

#include "k8s/codec.hpp"
#include "k8s/label_selector.hpp"
#include "sim/json_text.hpp"

namespace haulout::rehearse {

NodeTable::NodeTable(sim::Cluster& cluster) : cluster_(cluster) {
  for (const sim::Object& node : cluster.store().list("nodes")) nodes_[sim::name_of(*node)];
  cluster.on_change([this](const sim::Change& change) {
    if (change.key.resource != "nodes") return;
    if (change.type == sim::ChangeType::deleted)
      nodes_.erase(change.key.name);
    else
      nodes_[change.key.name] = {};
  });
}

Result<std::vector<agent::ListedNode>> NodeTable::list(std::string_view selector) {
  const auto wanted = k8s::parse_label_selector(selector);
  if (!wanted) return wanted.error();
  std::vector<agent::ListedNode> result;
  result.reserve(nodes_.size());
  for (auto& [name, listed] : nodes_) {
    if (!listed.node) {
      auto node = k8s::decode<k8s::Node>(sim::json_text(*cluster_.store().get({"nodes", "", name})));
      if (!node) return std::move(node).error();
      listed = agent::listed(*std::move(node));
    }
    if (wanted->matches(listed.node->labels)) result.push_back(listed);
  }
  return result;
}

}  // namespace haulout::rehearse
