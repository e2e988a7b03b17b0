// The gate "fleet": this node does not begin an update that has failed on another node of the pool. The slots, not this
// gate, limit how many nodes may be unavailable at a time. Borrows client and rng.
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

// Pure. `degraded` holds the nodes of the pool whose state label is `degraded`; it may include the own node `own`.
// Closed (UpdateFailedElsewhere) if another node was rebooted for the update that `wanted` names and has been degraded
// since. Two updates are the same if they have the same version. Without versions, all reasons of `wanted` must be
// among the reasons of that reboot. Open if `wanted` names neither a version nor a reason.
Gate fleet_gate(const std::vector<k8s::Node>& degraded, const std::string& own, const Pending& wanted);

class FleetHealth {
 public:
  FleetHealth(k8s::Client& client, Rng& rng, std::string node)
      : client_(client), rng_(rng), node_(std::move(node)), respite_(client.clock(), rng) {
    belong_to({});
  }

  // Sets the own pool; the gate ignores nodes of other pools. The caller must call changed() anew afterwards.
  void belong_to(OwnPool pool);

  // Closed with FleetUnknown if the Nodes cannot be listed. Off if the server forbids the list and this credential has
  // never been able to list Nodes. Cancellable.
  boost::asio::awaitable<Gate> judge(Pending wanted, TimePoint deadline);
  // Returns when the degraded nodes differ from those that judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  Task<std::vector<k8s::Node>> list(TimePoint deadline);

  k8s::Client& client_;
  Rng& rng_;
  std::string node_;
  OwnPool pool_;
  std::string selector_;
  std::set<std::string> seen_;  // UIDs of degraded nodes at the last judge()
  bool was_readable_ = false;
  Respite respite_;
};

}  // namespace haulout::agent
