// The back end for Flatcar Container Linux: update_engine over the system bus (com.coreos.update1). update_engine
// installs the new version by itself, and then reports that a reboot is needed.
//
// pending() returns yes for UPDATED_NEED_REBOOT, no for idle and for every step of an update, and unknown otherwise.
// booted() returns VERSION of etc/os-release; it fails as HostRoot does, and with Errc::unavailable if there is none.
// apply() does nothing. changed() returns when the operation or the version has changed, when the service or the bus
// has appeared or disappeared, or when next_recheck() is due. It ignores signals that report only the progress of a
// download. All coroutines are cancellable.
//
// The updater (FlatcarUpdater) requests that update_engine looks for an update. update_engine cannot look without
// installing: it downloads what it finds, and writes it to the partition that does not run.
#pragma once

#include <optional>

#include "agent/dbus/bus.hpp"
#include "agent/hosts/system_files.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/updater.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// What update_engine reports (GetStatus, StatusUpdate).
struct UpdateStatus {
  std::string operation;    // for example "UPDATE_STATUS_IDLE"
  std::string new_version;  // "0.0.0" if update_engine does not report it
  bool operator==(const UpdateStatus&) const = default;
};

// Returns the need for a reboot by the status. Pure.
Pending judge_update_status(const UpdateStatus& status);

class FlatcarBackend final : public Backend {
 public:
  // Borrows `bus` and `rng`.
  FlatcarBackend(Bus& bus, Rng& rng, HostRoot root);

  std::string name() const override { return "flatcar"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  void heard(sdbus::Message& signal);

  Bus& bus_;
  Rng& rng_;
  HostRoot root_;
  Notifier changed_;
  std::optional<UpdateStatus> last_;
  Listening listening_;
};

class FlatcarUpdater final : public Updater {
 public:
  // `progress` is the interval at which install() asks how far update_engine is. Borrows `bus` and `rng`.
  FlatcarUpdater(Bus& bus, Rng& rng, Duration progress = std::chrono::seconds(5))
      : bus_(bus), rng_(rng), progress_(progress) {}

  // Never returns yes, because update_engine installs by itself what it has found. Returns unknown if the last update
  // of update_engine failed, or if update_engine does not answer.
  boost::asio::awaitable<Updates> look(TimePoint deadline) override;
  // Waits about an hour, then requests that update_engine looks for an update.
  boost::asio::awaitable<void> changed() override;
  Task<> download(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  // Requests that update_engine looks for an update, and waits. Succeeds when update_engine has found none, or has
  // installed one. Cancellable; update_engine then continues without the agent.
  Task<> install(TimePoint deadline) override;

 private:
  // Requests that update_engine looks for an update. Does nothing if an update is under way or installed.
  Task<> attempt(TimePoint deadline);

  Bus& bus_;
  Rng& rng_;
  Duration progress_;
};

}  // namespace haulout::agent
