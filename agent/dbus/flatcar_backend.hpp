// Flatcar Container Linux: update_engine over the system bus (com.coreos.update1). It puts the new version in place by
// itself; a reboot is needed once it says so.
//
// pending(): yes for UPDATED_NEED_REBOOT, no for idle and for every step on the way there; unknown for anything else.
// booted(): VERSION of etc/os-release. changed(): the operation or the version changed, the service or the bus came or
// went, or next_recheck() is due; the steps of a download wake nobody.
#pragma once

#include <optional>

#include "agent/dbus/bus.hpp"
#include "agent/hosts/os_release.hpp"
#include "agent/ports/backend.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct UpdateStatus {
  std::string operation;    // "UPDATE_STATUS_IDLE"
  std::string new_version;  // "0.0.0" while unknown
  bool operator==(const UpdateStatus&) const = default;
};

// Pure.
Pending judge_update_status(const UpdateStatus& status);

class FlatcarBackend final : public Backend {
 public:
  // Bus and Rng outlive the back end.
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

}  // namespace haulout::agent
