// The commands that look at a fleet and steer it, as jobs: status, explain, pause, resume, request-reboot, and the
// names of nodes for the completion of a shell.
#pragma once

#include <memory>

#include "cli/program/program.hpp"

namespace haulout::cli {

// A MakeJob. `settings.command` is one of the above.
std::unique_ptr<Job> make_people_job(agent::Process& process, Tools tools, const Settings& settings);

// One node after the other, one failure does not stop the next.
class NodeByNodeJob : public Job {
 public:
  NodeByNodeJob(Tools tools, Settings settings) : tools_(std::move(tools)), settings_(std::move(settings)) {}
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 protected:
  // Says what it did. Its error is reported by the caller.
  virtual Task<> act(std::string node) = 0;

  TimePoint deadline() const { return saturating_add(tools_.clock.now(), call_limit); }
  void failed(const Error& error) { exit_code_ = std::max(exit_code_, report_failure(tools_, error)); }

  Tools tools_;
  Settings settings_;
  int exit_code_ = 0;

 private:
  std::vector<std::string> left_;  // not yet done
};

// The names of all nodes, one per line; nothing when the cluster does not answer at once.
class CompleteNodesJob final : public Job {
 public:
  explicit CompleteNodesJob(Tools tools) : tools_(std::move(tools)) {}
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int>) override { return 0; }

 private:
  Tools tools_;
};

}  // namespace haulout::cli
