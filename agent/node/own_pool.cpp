#include "agent/node/own_pool.hpp"

#include <set>

#include "agent/node/node_status.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

namespace {

std::set<std::string> pools_of_turns(const k8s::Node& node, const std::vector<k8s::Lease>& turns) {
  const std::string holder = OwnNode{node.name, node.uid}.holder();
  std::set<std::string> pools;
  for (const k8s::Lease& turn : turns)
    if (const auto pool = k8s::value_at(turn.labels, pool_label); pool && turn.holder == holder) pools.insert(*pool);
  return pools;
}

}  // namespace

bool is_control_plane(const OwnPool& pool) {
  return pool.by_role && pool.name == control_plane_pool;
}

std::string pool_of_role(const std::map<std::string, std::string>& node_labels) {
  return std::string(node_labels.contains(std::string(control_plane_label)) ? control_plane_pool : default_pool);
}

std::optional<std::string> told_pool(const k8s::Node& node) {
  if (const auto record = record_of(node); record && !record->pool.empty()) return record->pool;
  const auto label = k8s::value_at(node.labels, pool_label);
  return label && !label->empty() ? label : std::nullopt;
}

Membership membership_of(const k8s::Node& node, const OwnPool& pool, const std::vector<k8s::Lease>& turns) {
  if (!pool.node_selector.empty()) return Membership::member;  // the caller has listed the nodes with this selector
  if (const auto told = told_pool(node)) return *told == pool.name ? Membership::member : Membership::stranger;
  const auto held = pools_of_turns(node, turns);
  if (!held.empty()) return held.contains(pool.name) ? Membership::member : Membership::stranger;
  return pool.by_role && pool_of_role(node.labels) != pool.name ? Membership::stranger : Membership::unknown;
}

}  // namespace haulout::agent
