// rpm-ostree over the system bus (org.projectatomic.rpmostree1): detects, and verifies after the boot. It starts no
// transaction: those speak over connections of their own, which sdbus-c++ 1.2 does not have.
//
// pending(): see judge_deployments(). booted(): version or checksum of the booted deployment. changed(): the properties
// changed or the bus came or went. rpm-ostreed ends when it is idle and is started by a question, so that its coming
// and going is no reason to ask.
#pragma once

#include "agent/backend.hpp"
#include "agent/dbus/bus.hpp"
#include "agent/dbus/rpm_ostree_deployments.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

class RpmOstreeBackend final : public Backend {
 public:
  // The bus outlives the back end.
  explicit RpmOstreeBackend(Bus& bus);

  std::string name() const override { return "rpm-ostree"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Task<std::vector<Deployment>> deployments(TimePoint deadline);

  Bus& bus_;
  Notifier changed_;
  Listening listening_;
};

}  // namespace haulout::agent
