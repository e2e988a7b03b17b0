// `haulout pause` and `haulout resume`, over the keys that kubectl could write (gates/pause.hpp).
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
  // Of a pool, or of the cluster.
  Task<> act_on_key();
  // What this command writes. An error: it would be over before it began.
  Result<agent::Pause> wanted() const;
  bool pausing() const { return settings_.command == Command::pause; }
  // After a resume: what else still holds.
  void warn_of_others(const std::map<std::string, std::string>& entries, const std::string& but,
                      const std::string& pool) const;

  std::optional<agent::Pause> pause_;
};

}  // namespace haulout::cli
