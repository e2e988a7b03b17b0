// Installs the updates of Debian, Ubuntu and similar systems with apt-get, by apt's own policy, pins and holds.
//
// The agent never lets apt-get downgrade or remove a package, install one that is not authenticated, or change one on
// hold. The files of an administrator in /etc stay as they are. Which packages: all (`apt-get upgrade
// --with-new-pkgs`), or those from a security archive.
//
// Services that still use replaced files are found and restarted by needrestart, if the machine has it, by its own
// configuration. The agent runs it itself after the installation, and not from apt's hook: the hook does not run after
// dpkg has failed, nor after `dpkg --configure -a`, and a machine that reboots anyway needs no restarts.
//
// Fails with Errc::unavailable if a program fails, if apt-get would remove a package, or if updates still wait after
// the installation; with Errc::decode if the output of apt-get cannot be read; with Errc::timeout if another program of
// the agent took too long; otherwise as HostPrograms and HostRoot do. Errors name the program. All coroutines are
// cancellable; whether a program that runs then continues depends on HostPrograms.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/backends/apt_updates.hpp"
#include "agent/hosts/host_programs.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/ports/updater.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class AptUpdater final : public Updater {
 public:
  struct Options {
    bool security_only = false;
    std::string apt_get = "/usr/bin/apt-get";
    std::string apt_mark = "/usr/bin/apt-mark";
    std::string dpkg = "/usr/bin/dpkg";
    std::string needrestart = "/usr/sbin/needrestart";
    std::string systemctl = "/bin/systemctl";
    // Services that still use replaced files after needrestart has restarted the others, and those that have failed
    // then, need a reboot: the agent creates /run/reboot-required, as packages do.
    bool reboot_for_services = false;
    // Interval at which changed() returns, so that the agent calls look() again. No event reports that an update is
    // available: it appears in the lists that apt-get update fetches.
    Duration look_interval = std::chrono::minutes(30);
    // Time between two fetches of the lists of available packages, the same as for apt's own daily job.
    Duration list_interval = std::chrono::hours(24);
    // Added to the environment and to the options of dpkg; for tests.
    std::vector<std::pair<std::string, std::string>> env{};
    std::vector<std::string> dpkg_options{};
  };
  // Borrows `programs`, `clock` and `rng`.
  AptUpdater(HostRoot root, HostPrograms& programs, Clock& clock, Rng& rng, Options options);

  boost::asio::awaitable<Updates> look(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  Task<> download(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> install(TimePoint deadline) override;
  Task<std::vector<std::string>> old_services(TimePoint deadline) override;
  Task<> restart_services(TimePoint deadline) override;
  Task<std::vector<std::string>> failed_services(std::vector<std::string> services, TimePoint deadline) override;
  Task<bool> need_reboot_for(std::vector<std::string> services, TimePoint deadline) override;

 private:
  HostProgram apt_get(std::vector<std::string> args, const std::string& description) const;
  HostProgram apt_mark(std::vector<std::string> args, const std::string& description) const;
  HostProgram shell(std::string script, std::vector<std::string> args, const std::string& description) const;
  // Makes the program one whose output is kept, and that may run beside a program that changes the machine.
  HostProgram look_only(HostProgram program);
  // Returns the output of a program that changes nothing. Fails unless it succeeds.
  Task<std::string> output_of(HostProgram program, TimePoint deadline);
  // The arguments of apt-get that install the updates of the plan.
  std::vector<std::string> upgrade(const AptPlan& plan) const;
  Task<AptPlan> plan(TimePoint deadline);
  Task<> refresh(TimePoint deadline);
  Task<> repair(TimePoint deadline);
  Task<> install(const AptPlan& wanted, TimePoint deadline);
  // Runs a program that changes the machine. First waits until no other such program runs, also none that an earlier
  // agent has started.
  Task<> change(HostProgram program, TimePoint deadline);

  HostRoot root_;
  HostPrograms& programs_;
  Clock& clock_;
  Rng& rng_;
  Options options_;
  TimePoint next_lists_ = TimePoint::min();  // when the lists are fetched next
  std::size_t looks_ = 0;
  bool changing_ = false;
};

}  // namespace haulout::agent
