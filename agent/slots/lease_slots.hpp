// Turns as Leases in the agent's namespace: as many per pool as nodes may be out at a time. See slot_rules.hpp for who
// may hold one, and slots.hpp for the port.
//
// Taken by POST, which one of many wins; looked at once more with all others; confirmed by a read a second later, since
// the garbage collector takes away at once what a Node that has gone would hold. Released by DELETE of exactly what was
// read. Never PUT: that brings back what was deleted. Never renewed: a turn does not expire.
#pragma once

#include <functional>

#include "agent/slots.hpp"
#include "agent/slots/slot_rules.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct LeaseSlotsOptions {
  std::string ns = "haulout";
  std::string pool = "default";
  std::string node_selector{};  // label selector of the pool's nodes; empty: all nodes
  // From the number of the pool's nodes to the number that may be out.
  std::function<std::size_t(std::size_t nodes)> limit = [](std::size_t) { return std::size_t{1}; };
};

class LeaseSlots final : public Slots {
 public:
  // Borrows client, rng and the node's identity.
  LeaseSlots(k8s::Client& client, Rng& rng, const OwnNode& node, LeaseSlotsOptions options);

  std::string name() const override { return "lease"; }
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  // The pool's slots, most recent.
  Task<std::vector<k8s::Lease>> list(TimePoint deadline);
  // The same with what counts against the limit.
  Task<PoolView> look(TimePoint deadline);
  Task<> give_back(k8s::Lease lease, TimePoint deadline);

  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;
  const OwnNode& node_;
  LeaseSlotsOptions options_;
  std::map<std::string, std::string> last_seen_;  // resourceVersion by UID
};

}  // namespace haulout::agent
