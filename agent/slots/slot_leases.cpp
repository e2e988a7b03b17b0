#include "agent/slots/slot_leases.hpp"

#include <fmt/format.h>

#include "agent/node/pool.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {

namespace {

// Time between two lists while deleted Leases still exist.
constexpr Duration release_again = std::chrono::milliseconds(500);

}  // namespace

Task<std::vector<k8s::Lease>> list_slots(k8s::Client& client, std::string ns, TimePoint deadline) {
  CO_TRY(auto leases,
         co_await client.list<k8s::Lease>(
             {.label_selector = std::string(pool_label), .limit = k8s::usual_page, .ns = std::move(ns)}, deadline));
  co_return std::move(leases.items);
}

Task<> delete_slot(k8s::Client& client, k8s::Lease slot, TimePoint deadline) {
  auto deleted =
      co_await client.remove<k8s::Lease>(slot.ns, slot.name, {slot.uid, {}, {}, slot.resource_version}, deadline);
  if (!deleted && !k8s::is_conflict(deleted.error()) && !k8s::is_gone(deleted.error()))
    co_return std::move(deleted).error();
  co_return Result<>();
}

Task<bool> delete_slots(k8s::Client& client, OwnSlots own, TimePoint deadline) {
  for (int round = 0;; ++round) {
    CO_TRY(const auto slots, co_await own(deadline));
    if (slots.empty()) co_return round > 0;
    for (const k8s::Lease& slot : slots) CO_CHECK(co_await delete_slot(client, slot, deadline));
    if (round == 0) continue;
    if (deadline - client.clock().now() < release_again)
      co_return Error(Errc::timeout, fmt::format("Lease {}/{} was deleted but still exists; check its finalizers",
                                                 slots.front().ns, slots.front().name));
    co_await client.clock().sleep_until(client.clock().now() + release_again);
  }
}

}  // namespace haulout::agent
