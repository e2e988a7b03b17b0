#include "agent/slots/pool_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/node/node_cordon.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/pool_member.hpp"
#include "base/text.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {
namespace {

bool in_service(const k8s::Node& node) {
  return node.ready && !node.unschedulable;
}

OutNode out_node(const k8s::Node& node, bool counts) {
  std::string why = out_of_service(node);
  if (!counts) why += fmt::format("; its pool is unknown: label it {}=NAME", pool_label);
  return {node.name, std::move(why)};
}

}  // namespace

OwnPool pool_named(const SlotGrouping& grouping, const std::string& name) {
  const bool labelled = !grouping.pool_label.empty();
  return {name, labelled ? grouping.pool_label + "=" + name : std::string(), !labelled && grouping.pool.empty()};
}

std::vector<PoolNode> nodes_of(const OwnPool& pool, const OwnNode& own, const std::vector<k8s::Node>& nodes,
                               const std::vector<k8s::Lease>& turns) {
  std::vector<PoolNode> found;
  for (const k8s::Node& node : nodes) {
    const Membership membership = node.uid == own.uid ? Membership::member : membership_of(node, pool, turns);
    if (membership != Membership::stranger) found.push_back({&node, membership == Membership::member});
  }
  return found;
}

GroupView view_of(SlotGroup group, const std::string& zone_label_key, const std::vector<PoolNode>& nodes,
                  const std::vector<k8s::Lease>& slots) {
  GroupView view{std::move(group), slots};
  for (const PoolNode& each : nodes) {
    const k8s::Node& node = *each.node;
    const auto zone = node.labels.find(zone_label_key);
    const bool belongs = view.group.zone.empty() || (zone != node.labels.end() && zone->second == view.group.zone);
    if (!belongs) continue;
    view.members += each.counts;
    if (!in_service(node)) view.out.push_back(out_node(node, each.counts));
    if (k8s::value_at(node.labels, state_label) == to_string(State::degraded))
      view.degraded[node.name] = printable(k8s::value_at(node.labels, reason_label).value_or(""));
  }
  return view;
}

std::optional<OutNode> out_of(const k8s::Node& node, const OwnPool& pool) {
  const Membership membership = membership_of(node, pool);
  if (in_service(node) || membership == Membership::stranger) return std::nullopt;
  return out_node(node, membership == Membership::member);
}

std::vector<OutNode> out_without_slot(const std::vector<GroupView>& views, std::string_view but) {
  std::vector<OutNode> nodes;
  for (const GroupView& view : views)
    for (OutNode& node : out_without_slot(view, but))
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace haulout::agent
