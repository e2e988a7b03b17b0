#include "agent/dbus/rpm_ostree_backend.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "agent/dbus/bus_call.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

namespace {

Pending unknown(std::string problem) {
  Pending out;
  out.problem = std::move(problem);
  return out;
}

}  // namespace

std::string version_of(const Deployment& deployment) {
  return deployment.version.empty() ? deployment.checksum : deployment.version;
}

Pending judge_deployments(const std::vector<Deployment>& deployments) {
  const auto is_booted = [](const Deployment& deployment) { return deployment.booted; };
  if (std::none_of(deployments.begin(), deployments.end(), is_booted))
    return unknown("rpm-ostree reports no booted deployment; is this a live system, or the bus of another machine?");
  const auto staged = std::find_if(deployments.begin(), deployments.end(),
                                   [](const Deployment& deployment) { return deployment.staged; });
  const Deployment& next = staged != deployments.end() ? *staged : deployments.front();
  Pending out;
  if (next.booted) {
    out.need = Need::no;
    return out;
  }
  if (next.staged && next.locked)
    return unknown(
        fmt::format("deployment {} is staged and locked, so a reboot would not apply it; unlock it (ostree admin "
                    "lock-finalization --unlock), and configure the program that locked it (zincati?) not to. Do not "
                    "run rpm-ostree finalize-deployment: it reboots the machine at once, without waiting for a drain",
                    version_of(next)));
  out.need = Need::yes;
  out.target = version_of(next);
  out.reasons.push_back(fmt::format("{} deployment {}", next.staged ? "staged" : "pending", out.target));
  return out;
}

namespace {

// Source: github.com/coreos/rpm-ostree, src/daemon/org.projectatomic.rpmostree1.xml
const std::string service = "org.projectatomic.rpmostree1";
const std::string path = "/org/projectatomic/rpmostree1/Sysroot";
const std::string interface = "org.projectatomic.rpmostree1.Sysroot";

using Dictionary = std::map<std::string, sdbus::Variant>;

// Copies the value of `key` to `out`; leaves `out` unchanged if there is no such key. Returns false if the type
// differs.
template <class T>
bool take(const Dictionary& from, const std::string& key, T& out) {
  const auto found = from.find(key);
  if (found == from.end()) return true;
  if (!found->second.containsValueOfType<T>()) return false;
  out = found->second.get<T>();
  return true;
}

Result<Deployment> decode(const Dictionary& from) {
  Deployment out;
  const bool typed = take(from, "version", out.version) && take(from, "checksum", out.checksum) &&
                     take(from, "booted", out.booted) && take(from, "staged", out.staged) &&
                     take(from, "finalization-locked", out.locked);
  if (!typed || out.checksum.empty())
    return Error(Errc::decode, "rpm-ostree describes a deployment in a format that the agent does not know");
  return out;
}

}  // namespace

RpmOstreeBackend::RpmOstreeBackend(Bus& bus, Rng& rng)
    : bus_(bus),
      rng_(rng),
      changed_(bus.executor()),
      listening_(bus, {{fmt::format("type='signal',sender='{}',path='{}',interface='org.freedesktop.DBus.Properties',"
                                    "member='PropertiesChanged'",
                                    service, path)},
                       [this](sdbus::Message&) { changed_.notify(); },
                       [this] { changed_.notify(); }}) {}

Task<std::vector<Deployment>> RpmOstreeBackend::deployments(TimePoint deadline) {
  auto rows = co_await bus_property<std::vector<Dictionary>>(bus_, {service, path, interface, "Deployments"}, deadline);
  if (!rows && is_absent(rows.error()))
    co_return Error(Errc::unavailable,
                    "rpm-ostreed is not on the system bus and cannot be started (see systemctl status rpm-ostreed on "
                    "the host): " +
                        rows.error().message());
  if (!rows) co_return std::move(rows).error();
  std::vector<Deployment> out;
  for (const Dictionary& row : *rows) {
    CO_TRY(Deployment deployment, decode(row));
    out.push_back(std::move(deployment));
  }
  co_return out;
}

boost::asio::awaitable<Pending> RpmOstreeBackend::pending(TimePoint deadline) {
  auto all = co_await deployments(deadline);
  if (all) {
    Pending found = judge_deployments(*all);
    versions_are_shared_ = std::none_of(all->begin(), all->end(), [&found](const Deployment& deployment) {
      return deployment.checksum == found.target;
    });
    co_return found;
  }
  Pending out;
  out.problem = all.error().message();
  co_return out;
}

Task<std::string> RpmOstreeBackend::booted(TimePoint deadline) {
  CO_TRY(const std::vector<Deployment> all, co_await deployments(deadline));
  for (const Deployment& deployment : all)
    if (deployment.booted) co_return version_of(deployment);
  co_return Error(Errc::unavailable, "rpm-ostree reports no booted deployment");
}

Task<> RpmOstreeBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

boost::asio::awaitable<void> RpmOstreeBackend::changed() {
  co_await changed_.wait_until(bus_.clock(), next_recheck(bus_.clock(), rng_));
}

}  // namespace haulout::agent
