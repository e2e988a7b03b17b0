// The gate of --blocking-pod-selector. A node waits while it runs a pod that matches one of the selectors and has not
// finished. Borrows client and rng.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/respite.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class BlockingPods {
 public:
  BlockingPods(k8s::Client& client, Rng& rng, std::string node, std::vector<std::string> selectors)
      : client_(client),
        rng_(rng),
        node_(std::move(node)),
        selectors_(std::move(selectors)),
        respite_(client.clock(), rng) {}

  // Closed with BlockedByPod, or with BlockingPodsUnknown if the pods cannot be listed. Off if there are no selectors.
  // Cancellable.
  boost::asio::awaitable<Gate> judge(TimePoint deadline);
  // Returns when the matching pods differ from those that judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  boost::asio::awaitable<void> changed(std::size_t selector);
  Task<std::vector<k8s::Pod>> list(std::string selector, TimePoint deadline);

  k8s::Client& client_;
  Rng& rng_;
  std::string node_;
  std::vector<std::string> selectors_;
  std::vector<std::set<std::string>> seen_;  // UIDs of matching pods, for each selector, at the last judge()
  Respite respite_;
};

}  // namespace haulout::agent
