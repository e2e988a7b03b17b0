// `haulout explain`: reads a node and the objects that concern it, and prints why the node is not updated now. Changes
// nothing. Fails only if the Node itself cannot be read. If other objects cannot be read, the output says which, and
// why.
#pragma once

#include "cli/people/explanation.hpp"
#include "cli/people/people_job.hpp"

namespace haulout::cli {

class ExplainJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;

 private:
  Task<> act(std::string node) override;
  boost::asio::awaitable<void> check_fit(NodeFacts& facts);
  boost::asio::awaitable<drain::DaemonSetStates> look_up_daemon_sets(std::vector<k8s::Pod> pods);
};

}  // namespace haulout::cli
