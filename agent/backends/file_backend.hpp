// A sentinel file (--sentinel FILE): another program updates the system, and creates that file when a reboot is needed.
// The tool has no versions, and apply() does nothing. transactional-update removes and creates its sentinel in each of
// its runs. So after that sentinel disappears, the answer is `unknown` for 15 minutes, and then `no`.
//
// Reads the file beneath the host's root in each pending(). Clock and Rng must outlive the back end. Destroy it before
// the io_context on which it runs.
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
