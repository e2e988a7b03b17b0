// Debian, Ubuntu and similar systems. Package scripts create /run/reboot-required, and list the packages that need the
// reboot in /run/reboot-required.pkgs. (If /var/run is a directory of its own, the back end also reads these files
// there.) Plain Debian without unattended-upgrades or update-notifier creates no such file. There the option
// `running_kernel` compares the kernels in /boot with the running one.
//
// The tool has no versions. When the file appears, the packages are already installed, so apply() does nothing. Reads
// files beneath the host's root. Clock and Rng must outlive the back end. Destroy it before the io_context on which it
// runs.
#pragma once

#include "agent/backends/file_watch.hpp"
#include "agent/hosts/os_release.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// The packages in a reboot-required.pkgs file, in their order and without duplicates: at most ten, then "and N more".
// Pure. `cut`: the text is only the beginning of the file, so its last line can be incomplete.
std::vector<std::string> package_reasons(std::string_view text, bool cut);

class DebianBackend final : public Backend {
 public:
  struct Options {
    // The running release (uname -r). If set, the back end compares it with the kernels in /boot.
    std::optional<std::string> running_kernel{};
    // Why the back end cannot compare kernels, although no package script reports new ones. If set, a `no` of the back
    // end becomes `unknown`.
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
