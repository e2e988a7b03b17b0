// --blocking-pod-selector: a node with a pod that has not finished and matches one of the selectors waits until it is
// gone. Borrows client and rng.
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

  // BlockedByPod; BlockingPodsUnknown when the server cannot be asked; off without selectors. Cancellable.
  boost::asio::awaitable<Gate> judge(TimePoint deadline);
  // Returns when other pods match than judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  boost::asio::awaitable<void> changed(std::size_t selector);
  Task<std::vector<k8s::Pod>> list(std::string selector, TimePoint deadline);

  k8s::Client& client_;
  Rng& rng_;
  std::string node_;
  std::vector<std::string> selectors_;
  std::vector<std::set<std::string>> seen_;  // UIDs, for each selector
  Respite respite_;
};

}  // namespace haulout::agent
