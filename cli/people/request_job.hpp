// `haulout request-reboot`: asks the agents of nodes for a reboot, by an annotation of the Node. Refuses nodes without
// an agent, because the request would stay on the Node and take effect on the day on which an agent is installed.
#pragma once

#include "cli/people/people_job.hpp"

namespace haulout::cli {

class RequestJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;

 private:
  Task<> act(std::string node) override;
};

}  // namespace haulout::cli
