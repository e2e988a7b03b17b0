// `haulout cordon` and `haulout uncordon`: one node after the other, one failure does not stop the next.
#pragma once

#include "agent/job.hpp"
#include "drain/cordon.hpp"

namespace haulout::agent {

class CordonJob final : public Job {
 public:
  CordonJob(Tools tools, Settings settings);
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  Task<drain::CordonChange> change(std::string node);
  Task<drain::CordonChange> preview(std::string node);

  Tools tools_;
  Settings settings_;
  std::vector<std::string> left_;  // not yet done
  bool changing_ = false;          // the first of them is being changed
  int exit_code_ = 0;
};

}  // namespace haulout::agent
