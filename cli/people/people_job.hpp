// The jobs of the commands that show and control a fleet: status, explain, pause, resume, request-reboot,
// release; and the job
// that prints the names of nodes for the completion of a shell.
#pragma once

#include <memory>

#include "cli/people/views.hpp"
#include "cli/program/program.hpp"
#include "k8s/client.hpp"

namespace haulout::cli {

// Makes the job of one of these commands; `settings.command` must be one of them. Implements MakeJob (program.hpp).
std::unique_ptr<Job> make_people_job(agent::Process& process, Tools tools, const Settings& settings);

// Base of the jobs that act on one node after another. If one node fails, the job continues with the next.
class NodeByNodeJob : public Job {
 public:
  NodeByNodeJob(Tools tools, Settings settings) : tools_(std::move(tools)), settings_(std::move(settings)) {}
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 protected:
  // Acts on one node and prints what it did. If it fails, run() reports the error.
  virtual Task<> act(std::string node) = 0;

  TimePoint deadline() const { return saturating_add(tools_.clock.now(), call_limit); }
  void failed(const Error& error) { exit_code_ = std::max(exit_code_, report_failure(tools_, error)); }

  Tools tools_;
  Settings settings_;
  int exit_code_ = 0;

 private:
  std::vector<std::string> left_;  // nodes on which the job has not acted yet
};

// Prints the names of all nodes, one per line. If the API server does not respond within 2 s, prints nothing. The exit
// code is always 0.
class CompleteNodesJob final : public Job {
 public:
  explicit CompleteNodesJob(Tools tools) : tools_(std::move(tools)) {}
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int>) override { return 0; }

 private:
  Tools tools_;
};

// Reads what concerns the whole fleet: the Leases in which slots are stored, and the ConfigMap `haulout`. Never fails,
// because the nodes can be shown without these objects: the result contains the error of a failed read. Cancellable.
// Borrows the client.
boost::asio::awaitable<FleetFacts> read_facts(k8s::Client& client, std::string ns, TimePoint deadline);

}  // namespace haulout::cli
