#include "agent/slots/lease_slots.hpp"

#include "k8s/reflector.hpp"
#include "k8s/status.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Measured: a Lease whose owner does not exist is collected 14 to 40 ms after its creation, by an idle cluster.
constexpr Duration confirm_after = std::chrono::seconds(1);

const k8s::Lease* own_of(const std::vector<k8s::Lease>& slots, const OwnNode& node) {
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const auto& slot) { return held_by(slot, node); });
  return found == slots.end() ? nullptr : &*found;
}

asio::awaitable<void> follow(k8s::Reflector<k8s::Lease>& view) {
  static_cast<void>(co_await view.run());
}

}  // namespace

LeaseSlots::LeaseSlots(k8s::Client& client, Rng& rng, const OwnNode& node, LeaseSlotsOptions options)
    : client_(client), clock_(client.clock()), rng_(rng), node_(node), options_(std::move(options)) {}

Task<std::vector<k8s::Lease>> LeaseSlots::list(TimePoint deadline) {
  CO_TRY(auto leases,
         co_await client_.list_leases(options_.ns, std::string(pool_label) + "=" + options_.pool, deadline));
  std::vector<k8s::Lease> slots;
  last_seen_.clear();
  for (k8s::Lease& lease : leases.items) {
    last_seen_.emplace(lease.uid, lease.resource_version);
    if (slot_index(options_.pool, lease.name)) slots.push_back(std::move(lease));
  }
  co_return slots;
}

Task<PoolView> LeaseSlots::look(TimePoint deadline) {
  CO_TRY(const auto nodes, co_await client_.list_nodes(options_.node_selector, deadline));
  PoolView view;
  view.limit = options_.limit(nodes.items.size());
  for (const k8s::Node& node : nodes.items)
    if (!node.ready || node.unschedulable) view.out.push_back(node.name);
  CO_TRY(view.slots, co_await list(deadline));
  co_return view;
}

Task<Turn> LeaseSlots::take(TimePoint deadline) {
  CO_TRY(PoolView view, co_await look(deadline));
  if (!own_of(view.slots, node_)) {
    const SlotChoice choice = choose_slot(options_.pool, view, node_);
    if (!choice.take) co_return Turn{.why = choice.why};
    auto created = co_await client_.create_lease(
        slot_lease(options_.ns, options_.pool, *choice.take, node_, client_.server_now()), deadline);
    if (!created && k8s::is_already_exists(created.error())) co_return Turn{.why = "another node was faster"};
    if (!created) co_return std::move(created).error();
    // Whoever took one at the same moment, or under another limit, is seen now by both.
    CO_TRY(view, co_await look(deadline));
  }
  if (auto why = must_give_back(options_.pool, view, node_)) {
    if (const k8s::Lease* own = own_of(view.slots, node_)) CO_CHECK(co_await give_back(*own, deadline));
    co_return Turn{.why = *std::move(why)};
  }
  co_await clock_.sleep_until(clock_.now() + confirm_after);
  co_return co_await confirm(deadline);
}

Task<Turn> LeaseSlots::confirm(TimePoint deadline) {
  CO_TRY(const auto slots, co_await list(deadline));
  if (const k8s::Lease* own = own_of(slots, node_)) co_return Turn{.ours = true, .slot = own->name};
  co_return Turn{.why = "no Lease of pool " + options_.pool + " is held by this node"};
}

Task<> LeaseSlots::release(TimePoint deadline) {
  for (;;) {
    CO_TRY(const auto slots, co_await list(deadline));
    const k8s::Lease* own = own_of(slots, node_);
    if (!own) co_return Result<>();
    CO_CHECK(co_await give_back(*own, deadline));
  }
}

Task<> LeaseSlots::give_back(k8s::Lease lease, TimePoint deadline) {
  auto deleted = co_await client_.delete_lease(lease.ns, lease.name, lease.uid, lease.resource_version, deadline);
  // Changed or gone meanwhile: whoever asked looks again.
  if (!deleted && !k8s::is_conflict(deleted.error()) && !k8s::is_gone(deleted.error()))
    co_return std::move(deleted).error();
  co_return Result<>();
}

asio::awaitable<void> LeaseSlots::changed() {
  Notifier moved(co_await asio::this_coro::executor);
  k8s::ReflectorOptions options;
  options.ns = options_.ns;
  options.label_selector = std::string(pool_label) + "=" + options_.pool;
  k8s::Reflector<k8s::Lease> view(
      client_, rng_, k8s::Resource::leases, options, [](const std::string&, const k8s::Lease*) {},
      [&moved] { moved.notify(); });
  const auto differs = [&] {
    if (!view.health().synced) return false;
    std::map<std::string, std::string> seen;
    for (const auto& [uid, lease] : view.objects()) seen.emplace(uid, lease.resource_version);
    return seen != last_seen_;
  };
  co_await with_task_group([&](TaskGroup& group) {
    group.spawn(follow(view));
    return [](Notifier& notifier, Clock& clock, std::function<bool()> done) -> asio::awaitable<void> {
      while (!done()) co_await notifier.wait_until(clock, TimePoint::max());
    }(moved, clock_, differs);
  });
}

}  // namespace haulout::agent
