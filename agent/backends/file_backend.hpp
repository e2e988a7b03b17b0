// A sentinel file (--sentinel FILE): something else updates the system and leaves that file when it wants a reboot. The
// tool has no versions, and nothing has to be put in place. That of transactional-update comes and goes with each of
// its runs: once it was there, its absence is unknown for a while, and then a no.
//
// Files beneath the host's root, read as they are asked for. Clock and Rng must outlive the back end; it must be
// destroyed before the io_context that it runs on.
#pragma once

#include "agent/backends/file_watch.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

class FileBackend final : public Backend {
 public:
  FileBackend(HostRoot root, Clock& clock, Rng& rng, std::string sentinel);

  std::string name() const override { return "file"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Pending steadied(Pending answer);

  HostRoot root_;
  Clock& clock_;
  Rng& rng_;
  std::string sentinel_;
  FileWatch watch_;
  bool was_there_ = false;
  std::optional<TimePoint> missing_since_;
};

}  // namespace haulout::agent
