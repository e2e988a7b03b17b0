// The jobs by which people control agents: `haulout pause`, `resume` and `request-reboot`.
#pragma once

#include "agent/gates/pause.hpp"
#include "cli/people/people_job.hpp"

namespace haulout::cli {

// `haulout pause` and `haulout resume` keep agents from beginning updates, and let them go on. They write or remove
// annotations of Nodes or keys of the ConfigMap `haulout`, as kubectl could (agent/gates/pause.hpp).
class PauseJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;
  boost::asio::awaitable<void> run() override;

 private:
  Task<> act(std::string node) override;
  // Writes or removes the pause of a pool or of the cluster, which is a key of the ConfigMap.
  Task<> act_on_key();
  // Returns the pause that this command writes. Fails with Errc::invalid if the time of --until has passed already.
  Result<agent::Pause> wanted() const;
  bool pausing() const { return settings_.command == Command::pause; }
  // After a resume, warns of other pauses that are still in force. `entries` are the data of the ConfigMap; skips the
  // key `but`. `pool` is the pool of the node or nodes that were resumed.
  void warn_of_others(const std::map<std::string, std::string>& entries, const std::string& but,
                      const std::string& pool) const;

  std::optional<agent::Pause> pause_;
};

// `haulout request-reboot`: asks the agents of nodes for a reboot, by an annotation of the Node. Refuses nodes without
// an agent, because the request would stay on the Node and take effect on the day on which an agent is installed.
class RequestJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;

 private:
  Task<> act(std::string node) override;
};

}  // namespace haulout::cli
