// rpm-ostree over the system bus (org.projectatomic.rpmostree1): detects, and verifies after the boot. It starts no
// transaction: those speak over connections of their own, which sdbus-c++ 1.2 does not have.
//
// pending(): see judge_deployments(). booted(): version or checksum of the booted deployment. changed(): the properties
// changed, the bus came or went, or next_recheck() is due: what bootc or ostree stages while rpm-ostreed does not run,
// nobody tells of. It ends when it is idle and is started by a question, so that its coming and going is no reason to
// ask.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/dbus/rpm_ostree_deployments.hpp"
#include "agent/ports/backend.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class RpmOstreeBackend final : public Backend {
 public:
  // Bus and Rng outlive the back end.
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
