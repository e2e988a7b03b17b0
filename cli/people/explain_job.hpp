// `haulout explain`: reads, judges, prints; changes nothing. What may not be read is said, and no failure, but for the
// Node itself.
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
