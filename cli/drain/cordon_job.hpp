// `haulout cordon` and `haulout uncordon`: all nodes are looked up first, and where one cannot be, none is touched;
// then one after the other is changed, and one failure does not stop the next.
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
  std::vector<k8s::Node> left_;  // not yet done
  bool changing_ = false;        // the first of them is being changed
  int exit_code_ = 0;
};

}  // namespace haulout::cli
