// `haulout pause` and `haulout resume`: write or remove annotations of Nodes or keys of the ConfigMap, which kubectl
// could do, too (agent/gates/pause.hpp).
#pragma once

#include "agent/gates/pause.hpp"
#include "cli/people/people_job.hpp"

namespace haulout::cli {

class PauseJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;
  boost::asio::awaitable<void> run() override;

 private:
  Task<> act(std::string node) override;
  // Writes or removes the pause of a pool or of the cluster.
  Task<> act_on_key();
  // The pause that this command writes. Errc::invalid if --until is over already.
  Result<agent::Pause> wanted() const;
  bool pausing() const { return settings_.command == Command::pause; }
  // After a resume, warns of other pauses that are still in force. Skips the key `but`; `pool` is the pool of the
  // target.
  void warn_of_others(const std::map<std::string, std::string>& entries, const std::string& but,
                      const std::string& pool) const;

  std::optional<agent::Pause> pause_;
};

}  // namespace haulout::cli
