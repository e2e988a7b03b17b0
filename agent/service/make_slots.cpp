#include "agent/service/make_slots.hpp"

#include <fmt/format.h>

#include "agent/node/pool.hpp"
#include "agent/slots/fleetlock_slots.hpp"
#include "agent/slots/none_slots.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

SlotGrouping grouping_of(const AgentConfig& config) {
  return {config.pool, config.pool_label, config.zone_label};
}

Task<std::string> labelled_group(k8s::Client& client, const OwnNode& own, SlotGrouping grouping, TimePoint deadline) {
  CO_TRY(const k8s::Node node, co_await client.get_node(own.name, deadline));
  co_return fleetlock_group(grouping, node.name, node.labels);
}

Task<std::string> constant(std::string group) {
  co_return group;
}

// Returns the function that determines the node's group on the FleetLock server. If the group comes from a label, the
// function reads it from the Node each time. Fails with Errc::invalid if the pool's name cannot be a group.
Result<decltype(FleetLockOptions::group)> group_source(const AgentConfig& config, const SlotsAccess& access) {
  const SlotGrouping grouping = grouping_of(config);
  if (!grouping.pool_label.empty())
    return [&client = access.client, &own = access.own, grouping](TimePoint deadline) {
      return labelled_group(client, own, grouping, deadline);
    };
  auto group = fleetlock_group(grouping, access.own.name, {});
  if (!group) return std::move(group).error();
  return [group = *std::move(group)](TimePoint) { return constant(group); };
}

Result<MadeSlots> make_fleetlock(const AgentConfig& config, const SlotsAccess& access) {
  auto server = fleetlock_server(access.executor, access.client.clock(), config.fleetlock_url);
  if (!server) return std::move(server).error();
  auto id = fleetlock_id(access.root, access.own);
  if (!id) return std::move(id).error();
  auto group = group_source(config, access);
  if (!group) return std::move(group).error();
  MadeSlots made;
  made.client = std::move(server->client);
  made.slots = std::make_unique<FleetLockSlots>(
      *made.client, access.client.clock(), access.rng,
      FleetLockOptions{server->prefix, *std::move(group), *std::move(id), "FleetLock server " + config.fleetlock_url});
  return made;
}

}  // namespace

OwnPool own_pool(const AgentConfig& config, const k8s::Node& node) {
  if (!config.pool_label.empty()) {
    const auto label = node.labels.find(config.pool_label);
    // If the Node lacks the label, its pool is unknown, and the name is empty. Unless slots is none, such a node gets
    // no slot, so it does not matter what the gates answer for the empty pool.
    const std::string value = label == node.labels.end() ? std::string() : label->second;
    return {value, config.pool_label + "=" + value};
  }
  if (!config.pool.empty()) return {config.pool};
  // The groups of a FleetLock server are configured on the server, so the node's role does not matter.
  if (config.slots == SlotsChoice::fleetlock) return {std::string(default_pool)};
  return {pool_of_role(node.labels), {}, true};
}

std::string words_of_pool(const AgentConfig& config, const k8s::Node& node) {
  const OwnPool pool = own_pool(config, node);
  if (config.slots != SlotsChoice::lease) return pool.name;
  if (is_control_plane(pool))
    return fmt::format(
        "{}, because the node has the label {}: at most one node at a time, even if max-unavailable is greater; to use "
        "another pool, set the option pool",
        pool.name, control_plane_label);
  if (pool.name.empty())
    return fmt::format("unknown, because the Node has no value in label {}: set the label, or the node gets no slot",
                       config.pool_label);
  std::string text = fmt::format("{}, max-unavailable {}", pool.name, config.max_unavailable);
  if (!config.ramp.empty()) text += ", in waves of " + config.ramp;
  if (config.halt_after > 0) text += fmt::format(", halted at {}", count_of(config.halt_after, "failed node"));
  if (config.roll_out_order != AgentConfig{}.roll_out_order) text += ", in the order " + config.roll_out_order;
  return text;
}

Result<MadeSlots> make_slots(const AgentConfig& config, const SlotsAccess& access) {
  if (config.slots == SlotsChoice::fleetlock) return make_fleetlock(config, access);
  MadeSlots made;
  if (config.slots == SlotsChoice::none) {
    made.slots = std::make_unique<NoneSlots>(access.client.clock());
    return made;
  }
  auto limit = parse_max_unavailable(config.max_unavailable);
  if (!limit) return std::move(limit).error().with_context("--max-unavailable");
  LeaseSlotsOptions options;
  options.ns = config.ns;
  options.nodes = access.nodes;
  options.look_every = access.look_every;
  options.cluster_nodes = access.cluster_nodes;
  options.grouping = grouping_of(config);
  options.limit = [limit = *limit](std::size_t nodes) { return limit.of(nodes); };
  auto ramp = parse_ramp(config.ramp);
  if (!ramp) return std::move(ramp).error().with_context("--ramp");
  options.ramp = *std::move(ramp);
  options.halt_after = config.halt_after;
  auto order = parse_roll_out_order(config.roll_out_order);
  if (!order) return std::move(order).error().with_context("--roll-out-order");
  options.order = *std::move(order);
  made.slots = std::make_unique<LeaseSlots>(access.client, access.rng, access.own, std::move(options));
  return made;
}

}  // namespace haulout::agent
