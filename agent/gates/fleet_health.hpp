// Fleet health, as far as it is a gate's: an update that has just gone wrong on another node of the pool is not begun
// here. How many nodes may be out at a time is the slots' business. Borrows client and rng.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/respite.hpp"
#include "agent/node/own_pool.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Pure. `degraded`: nodes of the pool that say so, the own one included or not. Closed (UpdateFailedElsewhere) when one
// of them was rebooted for what is wanted here, the same version or, where there are none, all of the same reasons, and
// has not become well since. A need that names neither is nobody else's.
Gate fleet_gate(const std::vector<k8s::Node>& degraded, const std::string& own, const Pending& wanted);

class FleetHealth {
 public:
  FleetHealth(k8s::Client& client, Rng& rng, std::string node)
      : client_(client), rng_(rng), node_(std::move(node)), respite_(client.clock(), rng) {
    belong_to({});
  }

  // Other pools' nodes hold nobody back. changed() is to be called anew after it.
  void belong_to(OwnPool pool);

  // FleetUnknown when the server cannot be asked; off where this credential has never been able to list Nodes.
  // Cancellable.
  boost::asio::awaitable<Gate> judge(Pending wanted, TimePoint deadline);
  // Returns when other nodes are degraded than judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  Task<std::vector<k8s::Node>> list(TimePoint deadline);

  k8s::Client& client_;
  Rng& rng_;
  std::string node_;
  OwnPool pool_;
  std::string selector_;
  std::set<std::string> seen_;  // UIDs
  bool was_readable_ = false;
  Respite respite_;
};

}  // namespace haulout::agent
