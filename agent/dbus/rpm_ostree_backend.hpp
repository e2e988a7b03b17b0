// The back end for rpm-ostree, and the functions that interpret the deployments of a machine.
#pragma once

#include <string>
#include <vector>

#include "agent/dbus/bus.hpp"
#include "agent/ports/backend.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// The functions below interpret the deployments of an ostree system (Fedora CoreOS, RHCOS, Silverblue). Pure.

// A deployment. Lists of them are in rpm-ostree's order: the boot loader boots the first one next.
struct Deployment {
  std::string version;   // may be empty
  std::string checksum;  // checksum of the deployment's commit
  bool booted = false;
  bool staged = false;  // finalized only while the machine shuts down
  bool locked = false;  // finalization-locked: staged, and discarded by a plain reboot
};

// Returns the version, or the commit's checksum if the version is empty.
std::string version_of(const Deployment& deployment);

// Returns yes if a deployment is staged or if the first one is not the booted one. Returns unknown if none is booted,
// or if the staged deployment is locked: a plain reboot would boot the current version again and again. The text of
// the problem then says how to unlock it without a reboot.
Pending judge_deployments(const std::vector<Deployment>& deployments);

// The back end for rpm-ostree over the system bus (org.projectatomic.rpmostree1). It detects staged updates, and
// reports the booted version, by which the agent verifies an update. It starts no transaction, because rpm-ostree
// transactions use D-Bus connections of their own, which sdbus-c++ 1.2 does not support. So apply() does nothing.
//
// pending(): see judge_deployments(). booted() returns the version or the checksum of the booted deployment. changed()
// returns when the properties have changed, when the bus has appeared or disappeared, or when next_recheck() is due.
// The recheck finds what bootc or ostree stages while rpm-ostreed does not run, because that causes no signal. Starts
// and stops of rpm-ostreed are ignored: it stops when idle, and each query starts it. All coroutines are cancellable;
// booted() fails as Bus::exchange() does, and with Errc::decode or Errc::unavailable.
class RpmOstreeBackend final : public Backend {
 public:
  // Borrows `bus` and `rng`.
  RpmOstreeBackend(Bus& bus, Rng& rng);

  std::string name() const override { return "rpm-ostree"; }
  // As the last pending() has found. The checksum of a deployment with layered packages means nothing on other nodes.
  bool versions_are_shared() const override { return versions_are_shared_; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Task<std::vector<Deployment>> deployments(TimePoint deadline);

  Bus& bus_;
  Rng& rng_;
  Notifier changed_;
  Listening listening_;
  bool versions_are_shared_ = true;
};

}  // namespace haulout::agent
