// `haulout cordon` and `haulout uncordon`. The job looks up all nodes first, and changes none if a look-up fails. Then
// it changes one node after the other; a failure does not stop the next change.
#pragma once

#include "cli/program/job.hpp"
#include "drain/cordon.hpp"

namespace haulout::cli {

class CordonJob final : public Job {
 public:
  CordonJob(Tools tools, Settings settings);
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  Task<std::vector<k8s::Node>> look_up();
  Task<drain::CordonChange> change(k8s::Node node);

  Tools tools_;
  Settings settings_;
  std::vector<k8s::Node> left_;  // nodes that the job has not changed yet
  bool changing_ = false;  // true while a change of the first node in `left_` is in flight; never true in a dry run
  int exit_code_ = 0;
};

}  // namespace haulout::cli
