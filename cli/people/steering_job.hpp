// The jobs by which people control agents: `haulout pause`, `resume` and `request-reboot`.
#pragma once

#include "agent/gates/pause.hpp"
#include "cli/people/people_job.hpp"

namespace haulout::cli {

// The job of `haulout pause`, which keeps agents from beginning updates, and of `haulout resume`, which ends a pause.
// It writes or removes annotations of Nodes or keys of the ConfigMap `haulout`, as kubectl could
// (agent/gates/pause.hpp).
class PauseJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;
  boost::asio::awaitable<void> run() override;

 private:
  Task<> act(std::string node) override;
  // Writes or removes the pause of a pool or of the cluster, which is a key of the ConfigMap.
  Task<> act_on_key();
  // Returns the pause to write. Fails with Errc::invalid if the time of --until is in the past.
  Result<agent::Pause> wanted() const;
  bool pausing() const { return settings_.command == Command::pause; }
  // After a resume, prints a warning for each other pause that is still in force. `entries` are the data of the
  // ConfigMap; the key `but` is skipped. `pool` is the pool of the node or nodes that were resumed.
  void warn_of_others(const std::map<std::string, std::string>& entries, const std::string& but,
                      const std::string& pool) const;

  std::optional<agent::Pause> pause_;
};

// The job of `haulout request-reboot`: requests a reboot from the agents of the nodes, by an annotation of the Node.
// Rejects a node without an agent, because the annotation would stay and cause a reboot when an agent is installed
// later.
class RequestJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;

 private:
  Task<> act(std::string node) override;
};

}  // namespace haulout::cli
