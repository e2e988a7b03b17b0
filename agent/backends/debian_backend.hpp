// The back end for Debian and similar systems, and the comparison of kernels that it needs on plain Debian.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/backends/file_backend.hpp"
#include "agent/hosts/system_files.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// The next three functions find an installed kernel that is newer than the running one. Pure.

// Compares versions as dpkg does (deb-version(7), without epoch and revision). Compares runs of digits as numbers, and
// the text between them character by character: letters before other characters, "~" before everything, even the end.
std::weak_ordering compare_versions(std::string_view left, std::string_view right);

// Returns the last part of a release, which names its build: "cloud-amd64" of "6.1.0-18-cloud-amd64", "generic" of
// "5.15.0-91-generic", "" of "6.1.55". A release candidate ("rc5") is part of the version.
std::string kernel_flavour(std::string_view release);

// Returns the newest kernel that is newer than `running` and of the same flavour, from the files vmlinuz-RELEASE among
// the `names` in /boot. The boot loader chooses the flavour, and a reboot does not change it. If the running kernel has
// an initrd.img-RELEASE, a kernel without one does not count, because it cannot boot yet.
std::optional<std::string> newer_kernel(std::string_view running, const std::vector<std::string>& names);

// Returns the packages in a reboot-required.pkgs file, in their order and without duplicates: at most ten, then "and N
// more". `cut` is true if the text is only the beginning of the file, so that its last line may be incomplete. Pure.
std::vector<std::string> package_reasons(std::string_view text, bool cut);

// Debian, Ubuntu and similar systems. Package scripts create /run/reboot-required, and list the packages that need the
// reboot in /run/reboot-required.pkgs. (If /var/run is a directory of its own, the back end also reads these files
// there.) Plain Debian without unattended-upgrades or update-notifier creates no such file. There the option
// `running_kernel` compares the kernels in /boot with the running one.
//
// The tool has no versions. When the file appears, the packages are already installed, so apply() does nothing. Reads
// files beneath the host's root. No coroutine fails: an error is in the answer. Cancellable. Clock and Rng must outlive
// the back end. Destroy it before the io_context on which it runs.
class DebianBackend final : public Backend {
 public:
  struct Options {
    // The running release (uname -r). If set, the back end compares it with the kernels in /boot.
    std::optional<std::string> running_kernel{};
    // Why the back end cannot compare kernels although no package script reports new ones. If set, the back end returns
    // `unknown` instead of `no`.
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
