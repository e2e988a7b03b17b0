// The simulated cluster of a rehearsal, with its clock and a client. Rehearsals of drains and of fleets use it. Its
// clock begins so early that the cluster has come to rest at the time of the snapshot. Owns the clock, the cluster and
// the client. No I/O; not cancellable.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::rehearse {

class Stage {
 public:
  // Limit for a single request that a rehearsal itself sends.
  static constexpr Duration request_limit = std::chrono::seconds(30);

  Stage(const Assumptions& assumptions, std::uint64_t seed, std::uint32_t page_size);

  // Call it once. Fails with Errc::decode if the snapshot cannot be used.
  Result<> load(const Snapshot& snapshot);
  // Returns a phrase for each thing that no snapshot has and is assumed. Looks at the cluster as it was loaded.
  std::vector<std::string> assumed() const;
  // Runs `act` to its end while the simulated cluster runs. Blocks. Fails with Errc::invalid if `act` never ends.
  Result<> play(std::function<boost::asio::awaitable<void>()> act);
  // Waits until controllers, scheduler and kubelets have settled. To be used at the beginning and at the end of `act`.
  boost::asio::awaitable<void> come_to_rest();

 private:
  Assumptions assumptions_;
  std::optional<WallTime> dated_;        // time of a stored snapshot, from its objects
  std::vector<std::string> of_volumes_;  // phrases about what is assumed of volumes
  boost::asio::io_context context_{1};
  SeededRng world_rng_;

 public:
  boost::asio::any_io_executor executor() { return context_.get_executor(); }
  sim::VirtualClock clock{context_};
  SeededRng rng;
  sim::Cluster cluster;
  k8s::Client client;
};

}  // namespace haulout::rehearse
