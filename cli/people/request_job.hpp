// `haulout request-reboot`: asks the agents of nodes for a reboot. Only where there is an agent: otherwise the request
// would lie in wait for the day when one is installed.
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
