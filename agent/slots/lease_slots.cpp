#include "agent/slots/lease_slots.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "agent/node/node_status.hpp"
#include "agent/node/pool.hpp"
#include "agent/slots/slot_leases.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "k8s/objects.hpp"
#include "k8s/reflector.hpp"
#include "k8s/status.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Delay before take() reads its Lease again. Measured: an idle cluster deletes a Lease whose owner does not exist 14 to
// 40 ms after its creation.
constexpr Duration confirm_after = std::chrono::seconds(1);
// Shortest times after which an agent that waits for a slot polls. No watch shows a changed limit, or more than
// `most_followed` unavailable nodes: the agent polls for them after `look_interval`. If a watch shows that the holders
// or the unavailable nodes have changed, it polls after `stale_interval`; until then the message of the node may name a
// node that has released its slot.
constexpr Duration look_interval = std::chrono::minutes(2);
constexpr Duration stale_interval = std::chrono::seconds(30);
// Like these, if a node of the present wave has released its slot and its record does not say yet that it has come back
// well: it has been written since, or will be within seconds.
constexpr Duration wave_interval = std::chrono::seconds(5);
// Longest pause before a refused watch is opened again. For this time the agent may not notice that it has lost its
// slot.
constexpr Duration longest_blindness = std::chrono::seconds(30);
// Together, all waiting agents poll at most about twice per `look_interval_each`. Before an agent requests a free slot,
// it sleeps for a random time: at most `spread_each` for each waiting node, within `least_spread` and `most_spread`.
// This is chosen so that about one agent requests the slot before the others see on the watch that it is taken.
constexpr Duration look_interval_each = std::chrono::seconds(5);
constexpr Duration spread_each = std::chrono::milliseconds(100);
constexpr Duration least_spread = std::chrono::milliseconds(500);
constexpr Duration most_spread = std::chrono::seconds(30);
// In a cluster with so many Nodes, an agent that begins to wait looks at the Leases before it lists the Nodes.
constexpr std::size_t many_nodes = 50;
// Time limit for the request that reads the Node of a node that has released its slot.
constexpr Duration read_limit = std::chrono::seconds(30);
// Each followed node costs one more watch per waiting agent.
constexpr std::size_t most_followed = 2;

// Turn::slot has this prefix, the namespace, a slash and the name of the pool's Lease.
constexpr std::string_view slot_prefix = "lease/";

std::string selector_of(std::string_view key, const std::string& value) {
  return value.empty() ? std::string(key) : std::string(key) + "=" + value;
}

const k8s::Lease* own_of(const GroupView& view, const OwnNode& node) {
  const auto found = std::find_if(view.slots.begin(), view.slots.end(), [&](const k8s::Lease& slot) {
    return held_by(slot, node) && slot_index(view.group, slot.name);
  });
  return found == view.slots.end() ? nullptr : &*found;
}

// Returns the Leases that `node` holds, in the order in which they are released: zones last.
std::vector<k8s::Lease> all_of(const std::vector<k8s::Lease>& slots, const OwnNode& node) {
  std::vector<k8s::Lease> own;
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(own),
               [&](const k8s::Lease& slot) { return held_by(slot, node); });
  std::partition(own.begin(), own.end(), [](const k8s::Lease& slot) { return !is_zone_slot(slot.name); });
  return own;
}

bool holds_any(const std::vector<GroupView>& views, const OwnNode& node) {
  return std::any_of(views.begin(), views.end(), [&](const GroupView& view) { return own_of(view, node); });
}

std::map<std::string, std::string> versions_of(const std::vector<k8s::Lease>& slots) {
  std::map<std::string, std::string> versions;
  for (const k8s::Lease& slot : slots) versions.emplace(slot.uid, slot.resource_version);
  return versions;
}

bool waits(const PoolNode& node) {
  return node.state == State::waiting;
}

std::vector<k8s::Lease> items_of(const k8s::Reflector<k8s::Lease>& view) {
  std::vector<k8s::Lease> items;
  for (const auto& [uid, lease] : view.objects()) items.push_back(lease);
  return items;
}

// Returns the names of the nodes that hold a slot of the group, without machines outside of the cluster.
std::set<std::string> names_of(const GroupView& view) {
  const std::vector<std::string> holders = holders_of(view);
  std::set<std::string> names(holders.begin(), holders.end());
  std::erase_if(names, is_outside);
  return names;
}

// Returns true if the present wave may be over soon, and no Lease will show that.
bool ends_soon(const GroupView& view, const OwnNode& node) {
  return view.roll_out && present_wave(view, node.name).soon_over;
}

std::set<std::string> holders_of(const std::vector<k8s::Lease>& slots, const std::string& pool) {
  std::set<std::string> holders;
  for (const k8s::Lease& slot : slots)
    if (k8s::value_at(slot.labels, pool_label) == pool) holders.insert(slot.holder);
  return holders;
}

// Reads each Node that holds a slot in `pool`, but not in `slots`. Returns the view with how its update has ended. A
// Node that cannot be read counts as one that has not come back well.
asio::awaitable<GroupView> read_released(k8s::Client& client, GroupView pool, std::vector<k8s::Lease> slots) {
  GroupView now = pool;
  now.slots = std::move(slots);
  std::set<std::string> released = names_of(pool);
  for (const std::string& holder : names_of(now)) released.erase(holder);
  for (const std::string& name : released) {
    if (name.empty() || pool.roll_out->elsewhere.contains(name)) continue;
    const auto node = co_await client.get_node(name, client.clock().now() + read_limit);
    std::erase_if(pool.slots, [&](const k8s::Lease& slot) { return name_of_holder(slot) == name; });
    pool.roll_out->returned.erase(name);
    pool.roll_out->down.erase(name);
    if (node)
      note_node(*pool.roll_out, *node, client.server_now());
    else if (!k8s::is_gone(node.error()))
      pool.roll_out->returned[name] = {false};
  }
  co_return pool;
}

// Returns the nodes that wait, and have no slot.
std::set<std::string> waiting_of(const std::vector<PoolNode>& members, const GroupView& pool) {
  const std::set<std::string> holders = names_of(pool);
  std::set<std::string> waiting;
  for (const PoolNode& each : members)
    if (waits(each) && !holders.contains(each.node->name)) waiting.insert(each.node->name);
  return waiting;
}

// Returns the nodes that wait, and whose zone has no free slot: they hold nobody up.
std::set<std::string> without_zone_slot(const GroupView& pool, const std::vector<PoolNode>& members,
                                        const LeaseSlotsOptions& options) {
  std::set<std::string> without;
  const std::string& key = options.grouping.zone_label;
  std::map<std::string, bool> has_slot;  // by zone
  for (const PoolNode& each : members) {
    if (key.empty() || !waits(each)) continue;
    const std::string zone = k8s::value_at(each.node->labels, key).value_or("");
    if (!has_slot.contains(zone)) {
      GroupView view = view_of({pool.group.pool, zone}, key, members, pool.slots);
      view.limit = options.limit(view.members);
      has_slot[zone] = !zone.empty() && choose_slot(view, {each.node->name, each.node->uid}).take;
    }
    if (!has_slot[zone]) without.insert(each.node->name);
  }
  return without;
}

// A node that has taken a slot since the last look does not go before this one any more, also when it has released the
// slot. So this node sees its turn on the watch, however rarely it polls.
void forget_takers(GroupView& pool, const std::vector<k8s::Lease>& slots) {
  if (pool.before.empty()) return;
  GroupView now = pool;
  now.slots = slots;
  pool.before = earlier_without_slot(now);
}

// A node that waits for a slot to be updated to `version`.
struct Waiter {
  const k8s::Node& node;
  const std::string& version;
  const RollOutOrder& order;
};
// Sets which nodes go before this one. Returns how many nodes may ask for a slot at about the same time as this one.
std::int64_t form_line(GroupView& pool, const Waiter& own, const std::vector<PoolNode>& members,
                       const std::set<std::string>& passed_over) {
  std::vector<const k8s::Node*> nodes;
  for (const PoolNode& each : members)
    if (each.counts) nodes.push_back(each.node);
  OrderedLine line = line_of(own.order, own.node, own.version, nodes, passed_over);
  // A node that has failed keeps its place in the wave, and one that is unavailable already needs no other's, so nobody
  // goes before it.
  const bool has_place = pool.roll_out && has_failed(*pool.roll_out, own.node.name);
  if (has_place || !own.node.ready || own.node.unschedulable) line.before.clear();
  const auto near = static_cast<std::int64_t>(line.before.size() + line.beside + 1);
  pool.order = own.order;
  pool.before = std::move(line.before);
  return pool.before.empty() ? near : 2 * near;
}

std::size_t limit_of(const LeaseSlotsOptions& options, const OwnPool& pool, std::size_t nodes) {
  const std::size_t limit = options.limit(nodes);
  return is_control_plane(pool) ? std::min<std::size_t>(1, limit) : limit;
}

bool has_waves(const LeaseSlotsOptions& options, const std::string& version) {
  return (!options.ramp.empty() || options.halt_after > 0) && !version.empty();
}

// Returns the node as its watch shows it. Returns nothing if it is available, deleted, or in another pool.
std::optional<OutNode> now_out(const OutNode& seen, const k8s::Reflector<k8s::Node>& view, const OwnPool& pool) {
  if (!view.health().synced) return seen;
  // Compare the name, because the server, or a proxy in front of it, may ignore the selector.
  for (const auto& [uid, now] : view.objects())
    if (now.name == seen.name) return out_of(now, pool);
  return std::nullopt;
}

// Sets which holders of a slot are degraded, because then a person must act. Reads only the Nodes of a few holders.
Task<GroupView> with_degraded_holders(k8s::Client& client, GroupView view, TimePoint deadline) {
  const std::vector<std::string> holders = holders_of(view);
  if (holders.size() > most_followed) co_return view;
  for (const std::string& holder : holders) {
    if (holder.empty() || is_outside(holder)) continue;
    const auto node = co_await client.get_node(holder, deadline);
    if (!node && !k8s::is_gone(node.error())) co_return node.error();
    if (node) note_if_degraded(view, *node, state_of(k8s::value_at(node->labels, state_label).value_or("")));
  }
  co_return view;
}

Task<std::vector<ListedNode>> list_nodes(k8s::Client& client, std::string selector, TimePoint deadline) {
  CO_TRY(auto nodes, co_await client.list_nodes(std::move(selector), deadline));
  std::vector<ListedNode> result;
  result.reserve(nodes.items.size());
  for (k8s::Node& node : nodes.items) result.push_back(listed(std::move(node)));
  co_return result;
}

}  // namespace

LeaseSlots::LeaseSlots(k8s::Client& client, Rng& rng, const OwnNode& node, LeaseSlotsOptions options)
    : client_(client), clock_(client.clock()), rng_(rng), node_(node), options_(std::move(options)) {}

void LeaseSlots::remember(const std::string& slot) {
  if (!slot.starts_with(slot_prefix)) return;
  const std::string place = slot.substr(slot_prefix.size());
  const std::size_t slash = place.find('/');
  if (slash == std::string::npos || place.substr(0, slash) == options_.ns) return;
  left_behind_ = LeftBehind{place.substr(0, slash), place.substr(slash + 1)};
}

Task<std::vector<k8s::Lease>> LeaseSlots::list(TimePoint deadline) {
  CO_TRY(auto leases, co_await list_slots(client_, options_.ns, deadline));
  // changed() compares own_seen_ with its watch, which shows only the Leases of this node's pool. So own Leases of
  // other pools are left out here, or changed() would report a difference that never ends.
  auto own = all_of(leases, node_);
  std::erase_if(own, [this](const k8s::Lease& lease) {
    return !pool_.name.empty() && k8s::value_at(lease.labels, pool_label) != pool_.name;
  });
  // Copied, because another list() may replace unlisted_ while this one waits for a response.
  const std::vector<k8s::Lease> unlisted = unlisted_;
  std::vector<k8s::Lease> still_unlisted;
  for (const k8s::Lease& before : unlisted) {
    auto lease = co_await client_.get<k8s::Lease>(before.ns, before.name, deadline);
    if (!lease && k8s::is_gone(lease.error())) continue;
    if (!lease) co_return std::move(lease).error();
    if (is_unlisted(*lease)) still_unlisted.push_back(*std::move(lease));
  }
  unlisted_ = std::move(still_unlisted);
  // Set only after the last request: if list() fails, its caller has seen nothing, so changed() must still report the
  // change.
  own_seen_ = versions_of(own);
  refused_.clear();
  leases.insert(leases.end(), unlisted_.begin(), unlisted_.end());
  co_return std::move(leases);
}

Task<std::optional<Turn>> LeaseSlots::ask_leases(TimePoint deadline) {
  CO_TRY(const k8s::Node own, co_await client_.get_node(node_.name, deadline));
  CO_TRY(const auto groups, groups_of(options_.grouping, node_.name, own.labels));
  pool_ = pool_named(options_.grouping, groups.back().pool);
  CO_TRY(const auto slots, co_await list(deadline));
  if (!all_of(slots, node_).empty()) co_return std::optional<Turn>();
  for (const SlotGroup& group : groups) {
    GroupView view{group, slots};
    view.limit = limit_of(options_, pool_, options_.cluster_nodes);
    if (choose_slot(view, node_).take) continue;
    CO_TRY(view, co_await with_degraded_holders(client_, std::move(view), deadline));
    waiting_ = static_cast<std::int64_t>(options_.cluster_nodes);
    std::string why = choose_slot(view, node_).why;
    co_return std::optional(refuse({std::move(view)}, {std::move(why)}));
  }
  co_return std::optional<Turn>();
}

Task<std::vector<GroupView>> LeaseSlots::look(TimePoint deadline) {
  const SlotGrouping& grouping = options_.grouping;
  std::string pool_value;
  if (!grouping.pool_label.empty()) {
    // The request for the nodes of the pool needs the value of the pool's label, which is on this Node.
    CO_TRY(const k8s::Node own, co_await client_.get_node(node_.name, deadline));
    const SlotGrouping only_pool{.pool_label = grouping.pool_label};
    CO_TRY(const auto pool, groups_of(only_pool, node_.name, own.labels));
    pool_value = pool.back().pool;
  }
  // Before the Nodes, because a node that releases its slot meanwhile would be seen neither as a holder nor with the
  // record that it has written before.
  const bool in_waves = has_waves(options_, version_);
  std::vector<k8s::Lease> earlier;
  if (in_waves) {
    CO_TRY(earlier, co_await list(deadline));
  }
  const std::string selector = pool_value.empty() ? std::string() : selector_of(grouping.pool_label, pool_value);
  CO_TRY(const auto nodes,
         co_await (options_.nodes ? options_.nodes(selector, deadline) : list_nodes(client_, selector, deadline)));
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [this](const ListedNode& each) { return each.node->name == node_.name; });
  // If the list lacks this Node, it is not the list of the agent's fleet.
  if (found == nodes.end())
    co_return Error(
        Errc::invalid,
        fmt::format("the API server lists {}, but not this Node {}, so the agent takes no slot; it tries again",
                    count_of(nodes.size(), "node"), node_.name));
  const k8s::Node* own = found->node.get();
  if (own->uid != node_.uid)
    co_return Error(Errc::invalid,
                    fmt::format("Node {} was replaced: its UID is {}, not {}", node_.name, own->uid, node_.uid));
  CO_TRY(auto groups, groups_of(grouping, node_.name, own->labels));
  pool_ = pool_named(grouping, groups.back().pool);
  CO_TRY(const auto slots, co_await list(deadline));
  const auto members = nodes_of(pool_, node_, nodes, slots);
  waiting_ = std::count_if(members.begin(), members.end(), waits);
  std::vector<GroupView> views;
  for (SlotGroup& group : groups) {
    views.push_back(view_of(std::move(group), grouping.zone_label, members, slots));
    views.back().limit = limit_of(options_, pool_, views.back().members);
  }
  if (in_waves) views.back().roll_out = roll_out(views.back(), members, std::move(earlier));
  if (options_.order.by != RollOutOrder::By::any) {
    std::set<std::string> passed = patience_.passed_over(waiting_of(members, views.back()), clock_.now());
    passed.merge(without_zone_slot(views.back(), members, options_));
    const std::int64_t near = form_line(views.back(), {*own, version_, options_.order}, members, passed);
    waiting_ = std::min(waiting_, near);
  }
  if (out_without_slot(views, node_.name).size() > most_followed)
    for (GroupView& view : views)
      view.as_of = fmt::format("{:%H:%M} UTC", std::chrono::floor<std::chrono::minutes>(client_.server_now()));
  co_return views;
}

RollOut LeaseSlots::roll_out(GroupView pool, const std::vector<PoolNode>& members,
                             std::vector<k8s::Lease> earlier) const {
  std::vector<const k8s::Node*> nodes;
  for (const PoolNode& each : members)
    if (each.counts) nodes.push_back(each.node);
  RollOut roll_out = roll_out_of(version_, options_.ramp, pool.members, nodes, client_.server_now());
  roll_out.halt_after = options_.halt_after;
  const auto now = names_of(pool);
  pool.slots = std::move(earlier);
  note_released(roll_out, names_of(pool), now, false);
  return roll_out;
}

std::optional<LeaseSlots::Obstacle> LeaseSlots::refused_by_wave(const std::vector<GroupView>& views) const {
  for (const GroupView& view : views)
    // If no node may be unavailable, no wave can end either.
    if (auto why = view.limit == 0 ? std::nullopt : agent::refused_by_wave(view, node_))
      return Obstacle{*std::move(why),
                      present_wave(view, node_.name).halted ? reason::roll_out_halted : reason::waiting_for_wave};
  return std::nullopt;
}

Task<Turn> LeaseSlots::take(TimePoint deadline) {
  // With waves or an order, changed() must know more than the Leases show, so that it does not wake the agent in vain.
  const bool leases_suffice = !has_waves(options_, version_) && options_.order.by == RollOutOrder::By::any;
  if (!std::exchange(woken_, false) && leases_suffice && options_.cluster_nodes >= many_nodes) {
    CO_TRY(auto refusal, co_await ask_leases(deadline));
    if (refusal) co_return *std::move(refusal);
  }
  CO_TRY(auto views, co_await look(deadline));
  CO_CHECK(co_await give_back_strays(views, deadline));
  // Write nothing unless both the zone (if zones are limited) and the pool have a free slot, because each change wakes
  // all waiting agents.
  std::vector<k8s::Lease> wanted;
  std::optional<Obstacle> obstacle = refused_by_wave(views);
  for (const GroupView& view : views) {
    if (obstacle || own_of(view, node_)) continue;
    SlotChoice choice = choose_slot(view, node_);
    if (choice.take)
      wanted.push_back(slot_lease(options_.ns, view.group, *choice.take, node_, client_.server_now()));
    else
      obstacle = Obstacle{std::move(choice.why), std::move(choice.reason)};
  }
  const bool leaves_it = obstacle && obstacle->reason == reason::waiting_for_order;
  patience_.watch(leaves_it ? earlier_without_slot(views.back()) : std::vector<EarlierNode>(), clock_.now());
  if (obstacle && !holds_any(views, node_)) co_return refuse(std::move(views), *std::move(obstacle));
  const bool took = !obstacle && !wanted.empty();
  if (took) {
    CO_TRY(auto why, co_await post(std::move(wanted), deadline));
    if (why) obstacle = Obstacle{*std::move(why)};
  }
  // Look again: if another agent took a slot at the same moment, or uses another limit, both agents see it now.
  if (!obstacle && took) {
    CO_TRY(views, co_await look(deadline));
  }
  if (!obstacle) obstacle = refused_by_wave(views);
  for (const GroupView& view : views)
    if (auto why = obstacle ? std::nullopt : must_give_back(view, node_)) obstacle = Obstacle{*std::move(why)};
  if (obstacle) {
    CO_CHECK(co_await release(deadline));
    co_return refuse(std::move(views), *std::move(obstacle));
  }
  co_await clock_.sleep_until(clock_.now() + confirm_after);
  CO_TRY(Turn turn, co_await confirm(deadline));
  co_return turn.ours ? std::move(turn) : refuse(std::move(views), {std::move(turn.why)});
}

Task<std::optional<std::string>> LeaseSlots::post(std::vector<k8s::Lease> slots, TimePoint deadline) {
  for (k8s::Lease& slot : slots) {
    std::string name = slot.name;
    auto created = co_await client_.create<k8s::Lease>(std::move(slot), deadline);
    if (!created && k8s::is_already_exists(created.error())) {
      CO_TRY(std::string why, co_await look_at_taken(std::move(name), deadline));
      co_return why;
    }
    if (!created) co_return std::move(created).error();
  }
  co_return std::optional<std::string>();
}

Task<std::string> LeaseSlots::look_at_taken(std::string name, TimePoint deadline) {
  auto lease = co_await client_.get<k8s::Lease>(options_.ns, std::move(name), deadline);
  if (!lease && !k8s::is_gone(lease.error())) co_return std::move(lease).error();
  if (!lease || !is_unlisted(*lease)) co_return std::string("another node has just taken the slot");
  std::string why = "the slot is held by " + words_of(*lease);
  unlisted_.push_back(*std::move(lease));
  co_return why;
}

Task<Turn> LeaseSlots::confirm(TimePoint deadline) {
  CO_TRY(const auto slots, co_await list(deadline));
  const auto own = all_of(slots, node_);
  const bool zone = std::any_of(own.begin(), own.end(), [](const auto& slot) { return is_zone_slot(slot.name); });
  if (own.empty() || is_zone_slot(own.front().name))
    co_return Turn{.why = "this node took a slot of its pool, but has lost it again; the agent tries again"};
  if (!zone && !options_.grouping.zone_label.empty())
    co_return Turn{.why = "this node took a slot of its zone, but has lost it again; the agent tries again"};
  co_return Turn{.ours = true, .slot = fmt::format("{}{}/{}", slot_prefix, options_.ns, own.front().name)};
}

Task<> LeaseSlots::release(TimePoint deadline) {
  CO_CHECK(co_await delete_slots(client_, [this](TimePoint until) { return own_here(until); }, deadline));
  if (!left_behind_) co_return Result<>();
  auto given_back =
      co_await delete_slots(client_, [this](TimePoint until) { return own_left_behind(until); }, deadline);
  if (given_back) {
    left_behind_.reset();
    co_return Result<>();
  }
  co_return std::move(given_back)
      .error()
      .with_context(
          fmt::format("Lease {0} is in namespace {1}, which the agent does not use any more: allow it to list and "
                      "delete Leases there, or delete the Lease and remove the annotation {2} of the Node",
                      left_behind_->name, left_behind_->ns, record_annotation));
}

Task<std::vector<k8s::Lease>> LeaseSlots::own_here(TimePoint deadline) {
  CO_TRY(const auto slots, co_await list(deadline));
  co_return all_of(slots, node_);
}

Task<std::vector<k8s::Lease>> LeaseSlots::own_left_behind(TimePoint deadline) {
  CO_TRY(const auto slots, co_await list_slots(client_, left_behind_->ns, deadline));
  co_return all_of(slots, node_);
}

Task<> LeaseSlots::give_back_strays(const std::vector<GroupView>& views, TimePoint deadline) {
  for (const k8s::Lease& slot : all_of(views.front().slots, node_)) {
    const bool belongs = std::any_of(views.begin(), views.end(), [&](const GroupView& view) {
      return slot_index(view.group, slot.name).has_value();
    });
    if (!belongs) CO_CHECK(co_await delete_slot(client_, slot, deadline));
  }
  co_return Result<>();
}

TimePoint LeaseSlots::next_look(Duration at_least) {
  if (at_least > wave_interval) at_least = options_.look_every.value_or(at_least);
  const Duration interval = std::max<Duration>(at_least, waiting_ * look_interval_each);
  // The range begins at `at_least`, so that even if many agents begin to wait at once, one of them looks soon.
  return clock_.now() + rng_.between(at_least, 2 * interval);
}

Turn LeaseSlots::refuse(std::vector<GroupView> views, Obstacle obstacle) {
  const bool soon = obstacle.reason == reason::waiting_for_wave && ends_soon(views.back(), node_);
  // Only once: if the record is still the same then, something else is wrong, and polls each few seconds do not help.
  look_at_ = next_look(soon && !looked_soon_ ? wave_interval : look_interval);
  looked_soon_ = soon;
  look_at_ = std::min(look_at_, patience_.next());
  vain_until_ = clock_.now() + in_vain_.next(rng_);
  refused_ = std::move(views);
  for (GroupView& view : refused_) view.out = out_without_slot(view, node_.name);
  return Turn{.why = std::move(obstacle.why), .reason = std::move(obstacle.reason)};
}

bool LeaseSlots::has_room(const std::vector<k8s::Lease>& slots, const std::set<std::string>& back, bool well) const {
  return std::all_of(refused_.begin(), refused_.end(), [&](GroupView view) {
    const auto before = names_of(view);
    view.slots = slots;
    if (view.roll_out) note_released(*view.roll_out, before, names_of(view), well);
    std::erase_if(view.out, [&](const OutNode& node) { return back.contains(node.name); });
    return own_of(view, node_) || choose_slot(view, node_).take;
  });
}

asio::awaitable<void> LeaseSlots::changed() {
  Notifier moved(co_await asio::this_coro::executor);
  k8s::ReflectorOptions options;
  options.ns = options_.ns;
  options.label_selector = selector_of(pool_label, pool_.name);
  k8s::Reflector<k8s::Lease> view(
      client_, rng_, options, [](const std::string&, const k8s::Lease*) {}, [&moved] { moved.notify(); });
  std::vector<FollowedNode> nodes;
  if (auto out = out_without_slot(refused_, node_.name); out.size() <= most_followed)
    for (OutNode& node : out) nodes.push_back(follow(std::move(node), moved));
  co_await with_task_group([&](TaskGroup& group) {
    group.spawn(view.run_for_good(longest_blindness));
    for (const FollowedNode& node : nodes) group.spawn(node.view->run_for_good(longest_blindness));
    return refused_.empty() ? until_own_changes(view, moved) : until_room(view, nodes, moved);
  });
  woken_ = true;
}

LeaseSlots::FollowedNode LeaseSlots::follow(OutNode node, Notifier& moved) {
  k8s::ReflectorOptions options;
  options.field_selector = "metadata.name=" + node.name;
  auto view = std::make_unique<k8s::Reflector<k8s::Node>>(
      client_, rng_, options, [](const std::string&, const k8s::Node*) {}, [&moved] { moved.notify(); });
  return {std::move(node), std::move(view)};
}

// Returns when the Leases that this node holds have changed; for a holder no other change matters.
asio::awaitable<void> LeaseSlots::until_own_changes(const k8s::Reflector<k8s::Lease>& view, Notifier& moved) {
  while (!view.health().synced || versions_of(all_of(items_of(view), node_)) == own_seen_)
    co_await moved.wait_until(clock_, TimePoint::max());
}

asio::awaitable<void> LeaseSlots::until_room(const k8s::Reflector<k8s::Lease>& view,
                                             const std::vector<FollowedNode>& nodes, Notifier& moved) {
  const auto before = holders_of(refused_.front().slots, pool_.name);
  const auto slots = [&] {
    std::vector<k8s::Lease> all = items_of(view);
    all.insert(all.end(), unlisted_.begin(), unlisted_.end());
    return all;
  };
  const auto room = [&](bool well) {
    std::set<std::string> back;
    for (const FollowedNode& node : nodes)
      if (!now_out(node.seen, *node.view, pool_)) back.insert(node.seen.name);
    if (!view.health().synced) return false;
    forget_takers(refused_.back(), slots());
    return has_room(slots(), back, well);
  };
  const auto differs = [&] {
    return holders_of(items_of(view), pool_.name) != before ||
           std::any_of(nodes.begin(), nodes.end(),
                       [&](const auto& node) { return now_out(node.seen, *node.view, pool_) != node.seen; });
  };
  bool stale = false;
  for (TimePoint look = look_at_;;) {
    while (!room(true)) {
      if (!stale && view.health().synced && differs()) {
        stale = true;
        patience_.stop(clock_.now());
        look = std::min(look, next_look(stale_interval));
      }
      in_vain_.reset();
      if (clock_.now() >= look) co_return;
      co_await moved.wait_until(clock_, look);
    }
    // All waiting agents see a free slot at the same moment. After a random sleep, the first one takes it and the
    // others see it taken.
    const Duration spread = std::clamp<Duration>(waiting_ * spread_each, least_spread, most_spread);
    co_await clock_.sleep_until(clock_.now() + rng_.between(std::chrono::milliseconds(10), spread));
    if (room(true) && !room(false)) refused_.back() = co_await read_released(client_, refused_.back(), slots());
    if (room(false)) {
      // If the watch shows a free slot but take() finds none, wait for the backoff before the next request.
      if (vain_until_ > clock_.now()) co_await clock_.sleep_until(vain_until_);
      co_return;
    }
  }
}

}  // namespace haulout::agent
