#include "agent/dbus/rpm_ostree_deployments.hpp"

#include <fmt/format.h>

#include <algorithm>

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
        fmt::format("deployment {} is staged and locked, so a reboot would not apply it; the program that locked it "
                    "(zincati?) must finalize it, or run rpm-ostree finalize-deployment",
                    version_of(next)));
  out.need = Need::yes;
  out.target = version_of(next);
  out.reasons.push_back(fmt::format("{} deployment {}", next.staged ? "staged" : "pending", out.target));
  return out;
}

}  // namespace haulout::agent
