// Debian, Ubuntu and their like: /run/reboot-required, which package scripts leave, with the packages that asked for it
// in /run/reboot-required.pkgs. (/var/run is read too, where it is a directory of its own.) Plain Debian without
// unattended-upgrades or update-notifier leaves no such file; there the option `running_kernel` compares the kernels of
// /boot with the one that runs.
//
// The tool has no versions; packages are installed when the file appears, so apply has nothing to do. Files beneath the
// host's root. Clock and Rng must outlive the back end; it must be destroyed before the io_context that it runs on.
#pragma once

#include "agent/backends/file_watch.hpp"
#include "agent/hosts/os_release.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// The packages of a reboot-required.pkgs in their order, each once: at most ten, then "and N more". Pure. `cut`: the
// text is only the file's beginning, so that its last line may be half of one.
std::vector<std::string> package_reasons(std::string_view text, bool cut);

class DebianBackend final : public Backend {
 public:
  struct Options {
    // The release that runs (uname -r); set, it is compared with the kernels of /boot.
    std::optional<std::string> running_kernel{};
    // Why that could not be done although nobody else would tell of a new kernel; then nobody knows that none waits.
    std::string unseen_kernels{};
  };
  DebianBackend(HostRoot root, Clock& clock, Rng& rng, Options options);

  static bool detect(const OsRelease& release) { return release.is_like("debian"); }

  std::string name() const override { return "debian"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Pending sentinel_answer(const std::string& sentinel) const;
  Pending kernel_answer(const std::string& running) const;

  HostRoot root_;
  Clock& clock_;
  Rng& rng_;
  Options options_;
  FileWatch watch_;
};

}  // namespace haulout::agent
