// A host that the agent reboots over the system bus (LogindHost), with the interpretation of the answers of logind and
// systemd; and the lock of logind that delays a reboot by another program (ShutdownInhibitor).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/dbus/bus.hpp"
#include "agent/hosts/hosts.hpp"
#include "agent/ports/host.hpp"
#include "retry/notifier.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// The functions below interpret the answers of logind and systemd. Those that fail do so with Errc::unavailable. Pure.
// Sources: org.freedesktop.login1(5), org.freedesktop.systemd1(5).

// One row of ListInhibitors.
struct Inhibitor {
  std::string what;  // for example "shutdown:sleep"
  std::string who;
  std::string why;
  std::string mode;  // block, block-weak, delay
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;
};

// Succeeds for "yes", and for an answer that reports only inhibitors, which judge_inhibitors() checks separately. `uid`
// is the agent's user id on the bus.
Result<> judge_can_reboot(std::string_view answer, std::uint32_t uid);

// Returns true if a colon-separated list, as in the property BlockInhibited, contains "shutdown".
bool names_shutdown(std::string_view what);

// Succeeds if no inhibitor blocks a shutdown. Otherwise fails with an error that names each inhibitor's holder and its
// reason.
Result<> judge_inhibitors(const std::vector<Inhibitor>& inhibitors);

// Interprets Manager.SystemState. Returns true if the boot is complete, false if it is still in progress. Fails for a
// state from which the boot cannot complete.
Result<bool> judge_system_state(std::string_view state);

// What the reboot method "kexec" does: a reboot by kexec, or an ordinary one. `words` is the name of the method in
// messages, and says why.
struct KexecPlan {
  bool kexec = false;
  std::string words;
};

// Decides that from the content of /sys/kernel/kexec_loaded; nothing means that the file does not exist. `file` is its
// path for messages. Only "1", a loaded kernel, leads to a kexec. Never fails, because a machine that cannot use kexec
// is rebooted in the ordinary way.
KexecPlan plan_kexec(const Result<std::optional<std::string>>& loaded, std::string_view file);

// Adds hints to the error of a failed call to `service`: about containers if the call was not permitted, about other
// reboot methods if the service is not on the bus. Returns any other error unchanged.
Error explain_refusal(std::string_view service, Error refusal);

// A machine that the agent reboots over the system bus. The method "logind" honours inhibitors and the kubelet's
// graceful shutdown; the method "systemd" does not. The method "kexec" is "logind" with a kexec into the kernel that
// the administrator has loaded; if none is loaded, or if logind is too old, it is an ordinary reboot by logind.
// reboot_methods() names it by what it would do now, or by what the last request led to. Files are read beneath the
// host's root. All calls are cancellable.
//
// started() returns the time that systemd reports, because the agent's own systemd unit hides process 1 in /proc
// (ProtectProc=invisible). can_reboot() fails with Errc::unavailable, with the remedy, if a reboot would be refused or
// is blocked; otherwise as Bus::exchange() does. can_reboot() and reboot() fail with Errc::invalid if the method is
// none of "logind", "kexec" and "systemd", or is missing. blocked_by() names the program that FileHost::blocked_by()
// names. Otherwise, if logind or kexec is among the methods, it names the inhibitors of the modes block and block-weak
// and their holders. The agent honours inhibitors of every user; logind before systemd 257 ignores those that root
// holds. After Errc::timeout or Errc::reset from reboot() the machine may already be going down. boot_complete()
// returns true if the host does not run systemd, and fails if systemd is in a state from which the boot cannot
// complete.
class LogindHost final : public FileHost {
 public:
  // `methods` are "logind", "kexec" and "systemd" in order of preference. Borrows `bus`.
  LogindHost(Bus& bus, HostRoot root, std::vector<std::string> methods)
      : FileHost(std::move(root)), bus_(bus), methods_(std::move(methods)) {}

  Task<MachineStart> started(TimePoint deadline) override;
  std::vector<std::string> reboot_methods() const override;
  Task<> can_reboot(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;

 private:
  Task<> logind_permits(TimePoint deadline);
  Task<> systemd_permits(TimePoint deadline);
  Task<std::vector<Inhibitor>> inhibitors(TimePoint deadline);
  Task<> reboot_by_logind(bool kexec, TimePoint deadline);
  KexecPlan kexec_plan() const;

  Bus& bus_;
  std::vector<std::string> methods_;
  bool logind_lacks_kexec_ = false;  // the last request for a kexec showed that
};

// Holds logind's delay lock. While it is held, a `reboot` by another program waits for the agent, but at most for
// logind's InhibitDelayMaxSec. That limit is read from logind, because the configured value is often overridden.
//
// run() queries logind for its state, and takes the lock after hold(). Until release() it takes the lock again after a
// restart of the bus or of logind, and after a shutdown that was cancelled. It retries with backoff if logind refuses.
// The lock is a file descriptor, so it stays held without run(). It is closed on release, with this object, or with the
// process. One thread.
class ShutdownInhibitor final : public ShutdownDelay {
 public:
  // Borrows `bus` and `rng`.
  ShutdownInhibitor(Bus& bus, Rng& rng);
  ShutdownInhibitor(const ShutdownInhibitor&) = delete;
  ShutdownInhibitor& operator=(const ShutdownInhibitor&) = delete;
  ~ShutdownInhibitor() override { let_go(); }

  // Runs until it is cancelled. Only one run() at a time.
  boost::asio::awaitable<void> run();

  // Requests the lock. `systemd-inhibit --list` shows `why`.
  void hold(std::string why) override;
  void release() override;
  void let_shutdown_proceed() override;
  bool held() const override { return lock_ >= 0; }
  const std::string& problem() const override { return problem_; }
  bool known() const override { return asked_; }
  std::optional<TimePoint> shutdown_at() const override;
  boost::asio::awaitable<void> changed() override;

 private:
  void heard(sdbus::Message& signal);
  void prepare(bool preparing, TimePoint since);
  void let_go();
  // Queries logind whether it prepares a shutdown, because signals may have been missed, and for how long it delays a
  // shutdown.
  Task<> refresh();
  // Queries logind for its state, and takes the lock if it is needed and available.
  Task<> catch_up();
  Task<> take(std::string why);

  Bus& bus_;
  Rng& rng_;
  Notifier work_;     // wakes run()
  Notifier changed_;  // wakes the caller of changed()
  std::optional<std::string> wanted_;
  std::string problem_;
  int lock_ = -1;
  bool stale_ = true;  // the last known state of logind, or of the lock, may be out of date
  bool asked_ = false;
  // A signal that has arrived. It takes effect after logind has reported its current delay.
  struct Heard {
    bool preparing;
    TimePoint at;
  };
  std::optional<Heard> heard_;
  std::optional<TimePoint> preparing_since_;
  Duration delay_{};
  Listening listening_;
};

}  // namespace haulout::agent
