// Back end for rpm-ostree over the system bus (org.projectatomic.rpmostree1). It detects updates and verifies them
// after the boot. It starts no transaction: rpm-ostree transactions use D-Bus connections of their own, which sdbus-c++
// 1.2 does not support.
//
// pending(): see judge_deployments().
// booted(): version or checksum of the booted deployment.
// changed(): returns when the properties have changed, when the bus has come or gone, or when next_recheck() is due.
// The recheck finds what bootc or ostree stages while rpm-ostreed does not run, because that causes no signal. Starts
// and stops of rpm-ostreed are ignored: it stops when idle, and each query starts it.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/dbus/rpm_ostree_deployments.hpp"
#include "agent/ports/backend.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class RpmOstreeBackend final : public Backend {
 public:
  // Borrows `bus` and `rng`.
  RpmOstreeBackend(Bus& bus, Rng& rng);

  std::string name() const override { return "rpm-ostree"; }
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
};

}  // namespace haulout::agent
