#include "agent/slots/slot_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace haulout::agent {

namespace {

std::string node_of(const k8s::Lease& lease) {
  const std::string name = lease.holder.substr(0, lease.holder.find('/'));
  return name.empty() ? "nobody (Lease " + lease.name + ")" : name;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > shown) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

std::vector<std::string> holders(const std::vector<const k8s::Lease*>& slots) {
  std::vector<std::string> names;
  names.reserve(slots.size());
  for (const k8s::Lease* slot : slots) names.push_back(node_of(*slot));
  return names;
}

std::vector<const k8s::Lease*> of_pool(std::string_view pool, const PoolView& view) {
  std::vector<const k8s::Lease*> slots;
  for (const k8s::Lease& lease : view.slots)
    if (slot_index(pool, lease.name)) slots.push_back(&lease);
  return slots;
}

// Nodes that are out and hold no slot: those that do are counted by it.
std::vector<std::string> out_without_slot(const std::vector<const k8s::Lease*>& slots, const PoolView& view,
                                          std::string_view but) {
  std::vector<std::string> out;
  for (const std::string& name : view.out) {
    const bool holds = std::any_of(slots.begin(), slots.end(),
                                   [&](const k8s::Lease* slot) { return slot->holder.starts_with(name + "/"); });
    if (!holds && name != but) out.push_back(name);
  }
  return out;
}

std::string explain(std::size_t limit, const std::vector<std::string>& holding, const std::vector<std::string>& out) {
  std::string why = fmt::format("at most {} of this pool may be out at a time", limit);
  if (!holding.empty()) why += "; the turn is with " + listed(holding);
  if (!out.empty()) why += "; not Ready or cordoned by somebody else: " + listed(out);
  return why;
}

}  // namespace

std::string slot_name(std::string_view pool, std::size_t index) {
  return fmt::format("haulout-{}-{}", pool, index);
}

std::optional<std::size_t> slot_index(std::string_view pool, std::string_view lease_name) {
  const std::string prefix = fmt::format("haulout-{}-", pool);
  if (!lease_name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = lease_name.substr(prefix.size());
  std::size_t index = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool whole = failure == std::errc() && end == digits.data() + digits.size();
  return whole && slot_name(pool, index) == lease_name ? std::optional(index) : std::nullopt;
}

k8s::Lease slot_lease(std::string_view ns, std::string_view pool, std::size_t index, const OwnNode& node,
                      WallTime now) {
  k8s::Lease lease;
  lease.ns = ns;
  lease.name = slot_name(pool, index);
  lease.labels = {{std::string(pool_label), std::string(pool)}};
  lease.holder = node.holder();
  lease.acquire_time = now;
  lease.owner = k8s::OwnerReference{"v1", "Node", node.name, node.uid};
  return lease;
}

bool held_by(const k8s::Lease& lease, const OwnNode& node) {
  return lease.holder == node.holder();
}

SlotChoice choose_slot(std::string_view pool, const PoolView& view, const OwnNode& node) {
  const auto slots = of_pool(pool, view);
  const auto out = out_without_slot(slots, view, node.name);
  if (slots.size() + out.size() >= view.limit) return {.why = explain(view.limit, holders(slots), out)};
  std::set<std::size_t> taken;
  for (const k8s::Lease* slot : slots) taken.insert(*slot_index(pool, slot->name));
  for (std::size_t index = 0; index < view.limit; ++index)
    if (!taken.contains(index)) return {.take = index};
  return {.why = explain(view.limit, holders(slots), out)};
}

std::optional<std::string> must_give_back(std::string_view pool, const PoolView& view, const OwnNode& node) {
  const auto slots = of_pool(pool, view);
  const auto own =
      std::find_if(slots.begin(), slots.end(), [&](const k8s::Lease* slot) { return held_by(*slot, node); });
  const auto out = out_without_slot(slots, view, node.name);
  if (own == slots.end()) return "the slot has gone again";
  if (slots.size() + out.size() > view.limit || *slot_index(pool, (*own)->name) >= view.limit)
    return explain(view.limit, holders(slots), out);
  return std::nullopt;
}

}  // namespace haulout::agent
