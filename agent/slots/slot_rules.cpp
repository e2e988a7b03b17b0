#include "agent/slots/slot_rules.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <set>

#include "agent/node/node_cordon.hpp"
#include "agent/node/node_status.hpp"
#include "agent/slots/waves.hpp"
#include "base/text.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

namespace {

std::vector<const k8s::Lease*> of_group(const GroupView& view) {
  std::vector<const k8s::Lease*> slots;
  for (const k8s::Lease& lease : view.slots)
    if (slot_index(view.group, lease.name)) slots.push_back(&lease);
  return slots;
}

// Returns one Lease per holder, and all Leases without a holder.
std::vector<const k8s::Lease*> one_of_each_holder(const std::vector<const k8s::Lease*>& slots) {
  std::vector<const k8s::Lease*> each;
  std::set<std::string_view> holders;
  for (const k8s::Lease* slot : slots)
    if (slot->holder.empty() || holders.insert(slot->holder).second) each.push_back(slot);
  return each;
}

// Returns the number of names that slots may have: the limit, plus the additional Leases of nodes that hold several.
std::size_t names_for(const GroupView& view, const std::vector<const k8s::Lease*>& slots) {
  return view.limit + slots.size() - one_of_each_holder(slots).size();
}

std::string holder_words(const GroupView& view, const k8s::Lease& slot) {
  const auto slots = of_group(view);
  const auto turns = std::count_if(slots.begin(), slots.end(), [&](const k8s::Lease* other) {
    return !slot.holder.empty() && other->holder == slot.holder;
  });
  const auto degraded = view.degraded.find(name_of_holder(slot));
  // No agent takes several slots of a group, so a person made these.
  if (turns > 1) return fmt::format("{} (has {} slots)", words_of(slot), turns);
  if (degraded == view.degraded.end()) return words_of(slot) + " (has the slot)";
  return fmt::format("{} (degraded{}{}, keeps its slot)", words_of(slot), degraded->second.empty() ? "" : ": ",
                     degraded->second);
}

std::string explain(const GroupView& view, const std::vector<const k8s::Lease*>& holding,
                    const std::vector<OutNode>& out) {
  if (view.limit == 0)
    return fmt::format(
        "max-unavailable allows no node of {} to be unavailable, so none is ever updated: raise max-unavailable",
        view.group.words());
  std::vector<std::string> nodes;
  nodes.reserve(holding.size() + out.size());
  for (const k8s::Lease* slot : holding) nodes.push_back(holder_words(view, *slot));
  for (const OutNode& node : out) nodes.push_back(node.why.empty() ? node.name : node.name + " (" + node.why + ")");
  const std::string are =
      view.as_of.empty() ? nodes.size() == 1 ? "is" : "are" : (nodes.size() == 1 ? "was at " : "were at ") + view.as_of;
  return fmt::format("of {}, at most {} may be unavailable at a time, and {} {}: {}", view.group.words(),
                     count_of(view.limit, "node"), nodes.size(), are, some_of(nodes));
}

constexpr std::string_view lease_prefix = "haulout-";
// Longest DNS subdomain, minus prefix and longest index.
constexpr std::size_t longest_group = 253 - lease_prefix.size() - 1 - std::numeric_limits<std::size_t>::digits10;
constexpr std::string_view escaped_prefix = "x--";
constexpr std::string_view outside_prefix = "outside machine ";
constexpr std::string_view fleetlock_prefix = "fleetlock/";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Encodes a label value as a part of a DNS subdomain without a dot. A value that has this form already stays as it is.
// The prefix "x--" marks an encoded value, so a value that contains "--" is always encoded.
std::string name_part(std::string_view value) {
  const bool fits = !value.empty() && is_plain(value.front()) && is_plain(value.back()) &&
                    value.find("--") == std::string_view::npos &&
                    std::all_of(value.begin(), value.end(), [](char c) { return is_plain(c) || c == '-'; });
  if (fits) return std::string(value);
  std::string out(escaped_prefix);
  for (const char c : value)
    out += is_plain(c) ? std::string(1, c) : fmt::format("-{:02x}", static_cast<unsigned char>(c));
  return out;
}

Result<std::string> value_of(const std::map<std::string, std::string>& labels, const std::string& key,
                             std::string_view option, const std::string& node) {
  const auto found = labels.find(key);
  if (found != labels.end() && !found->second.empty()) return found->second;
  return Error(Errc::invalid, fmt::format("Node {0} has no value in label {1}, which {2} names, so its pool or zone is "
                                          "unknown: set the label (kubectl label --overwrite node {0} {1}=…), or "
                                          "remove {2}",
                                          node, key, option));
}

}  // namespace

std::string SlotGroup::name() const {
  return zone.empty() ? name_part(pool) : name_part(pool) + "." + name_part(zone);
}

std::string SlotGroup::words() const {
  return zone.empty() ? "pool " + pool : fmt::format("pool {} in zone {}", pool, zone);
}

Result<std::vector<SlotGroup>> groups_of(const SlotGrouping& grouping, const std::string& node,
                                         const std::map<std::string, std::string>& node_labels) {
  std::string pool = grouping.pool.empty() ? pool_of_role(node_labels) : grouping.pool;
  if (!grouping.pool_label.empty()) {
    auto value = value_of(node_labels, grouping.pool_label, "pool-label", node);
    if (!value) return std::move(value).error();
    pool = *std::move(value);
  }
  std::vector<SlotGroup> groups;
  if (!grouping.zone_label.empty()) {
    auto zone = value_of(node_labels, grouping.zone_label, "zone-label", node);
    if (!zone) return std::move(zone).error();
    groups.push_back({pool, *std::move(zone)});
  }
  groups.push_back({std::move(pool)});
  if (groups.front().name().size() > longest_group)
    return Error(Errc::invalid, fmt::format("{}: with these names, the name of a Lease is longer than 253 characters; "
                                            "give the labels of Node {} shorter values",
                                            groups.front().words(), node));
  return groups;
}

std::string slot_name(const SlotGroup& group, std::size_t index) {
  return fmt::format("{}{}-{}", lease_prefix, group.name(), index);
}

std::optional<std::size_t> slot_index(const SlotGroup& group, std::string_view lease_name) {
  const std::string prefix = fmt::format("{}{}-", lease_prefix, group.name());
  if (!lease_name.starts_with(prefix)) return std::nullopt;
  const auto index = parse_number<std::size_t>(lease_name.substr(prefix.size()));
  return index && slot_name(group, *index) == lease_name ? index : std::nullopt;
}

bool is_zone_slot(std::string_view lease_name) {
  return lease_name.starts_with(lease_prefix) && lease_name.find('.') != std::string_view::npos;
}

OwnNode outside_machine(const std::string& id) {
  return {std::string(outside_prefix) + id, "fleetlock"};
}

bool is_outside(std::string_view holder) {
  return holder.starts_with(outside_prefix);
}

std::string fleetlock_slot(const FleetLockNames& names) {
  return std::string(fleetlock_prefix) + names.group + '@' + names.id;
}

FleetLockNames fleetlock_names(std::string_view slot) {
  if (!slot.starts_with(fleetlock_prefix)) return {};
  slot.remove_prefix(fleetlock_prefix.size());
  const std::size_t at = slot.find('@');  // neither a group nor an id has this sign
  return {std::string(slot.substr(0, at)), at == std::string_view::npos ? "" : std::string(slot.substr(at + 1))};
}

k8s::Lease slot_lease(std::string_view ns, const SlotGroup& group, std::size_t index, const OwnNode& node,
                      WallTime now) {
  k8s::Lease lease;
  lease.ns = ns;
  lease.name = slot_name(group, index);
  lease.labels = {{std::string(pool_label), group.pool}};
  if (!group.zone.empty()) lease.labels.emplace(zone_label, group.zone);
  lease.holder = node.holder();
  lease.acquire_time = now;
  if (!is_outside(node.name)) lease.owner = k8s::OwnerReference{"v1", "Node", node.name, node.uid};
  return lease;
}

bool is_unlisted(const k8s::Lease& lease) {
  return !lease.labels.contains(std::string(pool_label));
}

std::string name_of_holder(const k8s::Lease& lease) {
  return lease.holder.substr(0, lease.holder.find('/'));
}

std::string words_of(const k8s::Lease& lease) {
  const std::string name = name_of_holder(lease);
  if (is_unlisted(lease))
    return fmt::format(
        "{} (Lease {} lacks the label {}: set the label to the pool's name, or delete the Lease if its node is not "
        "being updated)",
        name.empty() ? "an unknown node" : name, lease.name, pool_label);
  return name.empty() ? fmt::format("an unknown node (Lease {} has no holder: delete the Lease)", lease.name) : name;
}

bool held_by(const k8s::Lease& lease, const OwnNode& node) {
  return lease.holder == node.holder();
}

std::vector<OutNode> out_without_slot(const GroupView& view, std::string_view but) {
  const auto slots = of_group(view);
  std::vector<OutNode> out;
  for (const OutNode& node : view.out) {
    const bool holds = std::any_of(slots.begin(), slots.end(),
                                   [&](const k8s::Lease* slot) { return slot->holder.starts_with(node.name + "/"); });
    if (!holds && node.name != but) out.push_back(node);
  }
  return out;
}

std::vector<std::string> holders_of(const GroupView& view) {
  std::vector<std::string> names;
  for (const k8s::Lease* slot : one_of_each_holder(of_group(view))) names.push_back(name_of_holder(*slot));
  return names;
}

std::vector<EarlierNode> earlier_without_slot(const GroupView& view) {
  const std::vector<std::string> holders = holders_of(view);
  std::vector<EarlierNode> earlier = view.before;
  std::erase_if(earlier, [&](const EarlierNode& node) {
    return std::find(holders.begin(), holders.end(), node.name) != holders.end();
  });
  return earlier;
}

Wave present_wave(const GroupView& view, const std::string& node) {
  std::vector<SlotHolder> holders;
  for (const k8s::Lease* slot : one_of_each_holder(of_group(view)))
    if (!is_outside(slot->holder)) holders.push_back({name_of_holder(*slot), words_of(*slot)});
  return wave_of(*view.roll_out, holders, view.degraded, node);
}

namespace {

// Returns how many names of slots the present wave leaves to `node`: the API server decides between several nodes that
// take the last place of a wave at the same time, because all of them ask for the same name. Slots that do not count in
// the wave have names, too.
std::size_t names_in_wave(const GroupView& view, const OwnNode& node, const std::vector<const k8s::Lease*>& slots) {
  const Wave wave = present_wave(view, node.name);
  return wave.number == 0 ? std::numeric_limits<std::size_t>::max() : wave.places + slots.size() - wave.taken;
}

}  // namespace

std::optional<std::string> refused_by_wave(const GroupView& view, const OwnNode& node) {
  if (!view.roll_out) return std::nullopt;
  const Wave wave = present_wave(view, node.name);
  return wave.has_place() ? std::nullopt : std::optional(words_of(wave, *view.roll_out));
}

SlotChoice choose_slot(const GroupView& view, const OwnNode& node) {
  const auto slots = of_group(view);
  const auto holding = one_of_each_holder(slots);
  const auto out = out_without_slot(view, node.name);
  if (holding.size() + out.size() >= view.limit) return {.why = explain(view, holding, out)};
  if (auto wave = refused_by_wave(view, node)) return {.why = *std::move(wave)};
  if (const auto earlier = earlier_without_slot(view); !earlier.empty())
    return {.why = words_of(view.order, earlier), .reason = reason::waiting_for_order};
  std::size_t names = names_for(view, slots);
  if (view.roll_out) names = std::min(names, names_in_wave(view, node, slots));
  std::set<std::size_t> taken;
  for (const k8s::Lease* slot : slots) taken.insert(*slot_index(view.group, slot->name));
  for (std::size_t index = 0; index < names; ++index)
    if (!taken.contains(index)) return {.take = index};
  return {.why = explain(view, holding, out)};
}

std::optional<std::string> must_give_back(const GroupView& view, const OwnNode& node) {
  const auto slots = of_group(view);
  const auto holding = one_of_each_holder(slots);
  const auto own =
      std::find_if(slots.begin(), slots.end(), [&](const k8s::Lease* slot) { return held_by(*slot, node); });
  const auto out = out_without_slot(view, node.name);
  if (own == slots.end()) return "this node took a slot, but has lost it again; the agent tries again";
  if (holding.size() + out.size() > view.limit || *slot_index(view.group, (*own)->name) >= names_for(view, slots))
    return explain(view, holding, out);
  return std::nullopt;
}

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

std::vector<PoolNode> nodes_of(const OwnPool& pool, const OwnNode& own, const std::vector<ListedNode>& nodes,
                               const std::vector<k8s::Lease>& turns) {
  std::vector<PoolNode> found;
  for (const ListedNode& each : nodes) {
    const Membership membership = each.node->uid == own.uid ? Membership::member : membership_of(each, pool, turns);
    if (membership != Membership::stranger)
      found.push_back({each.node.get(), membership == Membership::member, each.state});
  }
  return found;
}

void note_if_degraded(GroupView& view, const k8s::Node& node, std::optional<State> state) {
  if (state == State::degraded)
    view.degraded[node.name] = printable(k8s::value_at(node.labels, reason_label).value_or(""));
}

GroupView view_of(SlotGroup group, const std::string& zone_label_key, const std::vector<PoolNode>& nodes,
                  const std::vector<k8s::Lease>& slots) {
  GroupView view{std::move(group), slots};
  for (const PoolNode& each : nodes) {
    const k8s::Node& node = *each.node;
    if (!view.group.zone.empty() && k8s::value_at(node.labels, zone_label_key) != view.group.zone) continue;
    view.members += each.counts;
    if (!in_service(node)) view.out.push_back(out_node(node, each.counts));
    note_if_degraded(view, node, each.state);
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
