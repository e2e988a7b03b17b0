// The simulated cluster on which both kinds of rehearsal are played, and what plays on it: a clock that begins so that
// the world has come to rest at the time of the snapshot, the cluster, a client. Blocks until it is over.
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
  // No single request of a rehearsal takes longer.
  static constexpr Duration request_limit = std::chrono::seconds(30);

  Stage(const Assumptions& assumptions, std::uint64_t seed, std::uint32_t page_size);

  // Once. Errc::decode: a snapshot that cannot be used.
  Result<> load(const Snapshot& snapshot);
  // What no snapshot tells, a phrase each; of the world as it was loaded.
  std::vector<std::string> assumed() const;
  // Runs `act` to its end while the world goes on.
  Result<> play(std::function<boost::asio::awaitable<void>()> act);
  // Controllers, scheduler and kubelets settle; before `act` does anything, and after it.
  boost::asio::awaitable<void> come_to_rest();

 private:
  Assumptions assumptions_;
  std::optional<WallTime> dated_;        // of a snapshot that tells its moment itself
  std::vector<std::string> of_volumes_;  // phrases
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
