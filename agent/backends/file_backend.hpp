// Sentinel files, whose presence means that a reboot is needed: functions that read them, also for other back ends, and
// the back end of --sentinel.
#pragma once

#include "agent/backends/file_watch.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// These functions turn the content of a sentinel file into an answer. Pure, except read_sentinel(), which blocks while
// it reads the file.

// The sentinel of transactional-update for a new snapshot (MicroOS, Leap Micro).
inline constexpr std::string_view suse_sentinel = "/run/reboot-needed";

// Returns `yes` if the file exists; the reason is its first line that is not blank, or its name if all are blank.
// Returns `no` if the file or a directory of its path does not exist, and `unknown` if the file cannot be read.
Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name);
Pending read_sentinel(const HostRoot& root, const std::string& path);

// Returns `yes` if one of them is yes, otherwise `unknown` if one is unknown, otherwise `no`. If both are yes, the
// reasons of `first` come first.
Pending either(Pending first, Pending second);

// The back end for a sentinel file (--sentinel FILE): another program updates the system, and creates that file when a
// reboot is needed. There are no versions, and apply() does nothing. transactional-update removes and creates its
// sentinel in each of its runs; therefore, after that sentinel disappears, the answer is `unknown` for 15 minutes, and
// then `no`.
//
// Reads the file beneath the host's root in each pending(). Clock and Rng must outlive the back end. Destroy it before
// the io_context on which it runs.
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
