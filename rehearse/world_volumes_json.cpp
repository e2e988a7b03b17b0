#include "rehearse/world_volumes_json.hpp"

#include <fmt/format.h>
#include <set>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "sim/volumes.hpp"

namespace haulout::rehearse {
namespace {

// Returns the drivers whose volumes are not attached, although running pods use them. `attachRequired` of their
// CSIDriver would say that, but the snapshot may not have it.
std::vector<std::string> drivers_without_attaching(const sim::Cluster& cluster) {
  std::set<std::string> drivers;
  for (const sim::Object& pod : cluster.store().list("pods")) {
    if (sim::text(*pod, "/status/phase") != "Running") continue;
    for (const sim::Object& volume : sim::not_attached(cluster.store(), *pod))
      drivers.insert(sim::text(*volume, "/spec/csi/driver"));
  }
  for (const sim::Object& attachment : cluster.store().list("volumeattachments"))
    drivers.erase(sim::text(*attachment, "/spec/attacher"));
  for (const sim::Object& driver : cluster.store().list("csidrivers")) drivers.erase(sim::name_of(*driver));
  return {drivers.begin(), drivers.end()};
}

std::vector<std::string> forget_attaching(sim::Cluster& cluster) {
  std::vector<std::string> volumes;
  for (const sim::Object& attachment : cluster.store().list("volumeattachments")) {
    if (sim::terminating(*attachment) || sim::flag(*attachment, "/status/attached")) continue;
    volumes.push_back(sim::text(*attachment, "/spec/source/persistentVolumeName"));
    cluster.remove("volumeattachments", "", sim::name_of(*attachment));
  }
  return volumes;
}

}  // namespace

std::vector<std::string> prepare_volumes(sim::Cluster& cluster) {
  std::vector<std::string> assumed;
  const std::vector<std::string> drivers = drivers_without_attaching(cluster);
  for (const std::string& driver : drivers)
    cluster.create("csidrivers", {{"metadata", {{"name", driver}}}, {"spec", {{"attachRequired", false}}}});
  if (!drivers.empty())
    assumed.push_back(
        "volumes are not attached to nodes, because the snapshot shows pods that run without it, by driver " +
        some_of(drivers));
  if (const auto moving = forget_attaching(cluster); !moving.empty())
    assumed.push_back(
        "attachments in progress are discarded, and the volumes are attached again when a pod needs them: "
        "PersistentVolume " +
        some_of(moving));
  return assumed;
}

std::vector<std::string> assumed_of_volumes(const Assumptions& assumptions, const sim::Cluster& cluster,
                                            const std::vector<std::string>& nodes) {
  const auto attachments = cluster.store().list("volumeattachments");
  const bool any = std::any_of(attachments.begin(), attachments.end(), [&](const sim::Object& attachment) {
    return std::find(nodes.begin(), nodes.end(), sim::text(*attachment, "/spec/nodeName")) != nodes.end();
  });
  if (!any) return {};
  return {fmt::format("a volume is detached {} after its last pod on the node was deleted",
                      format_whole_seconds(assumptions.detach_within)),
          fmt::format("a volume is attached elsewhere in {}, after the node that had it exclusively has detached it; "
                      "its pod is Ready {} after that",
                      format_whole_seconds(assumptions.attach_within), format_whole_seconds(assumptions.ready_after))};
}

}  // namespace haulout::rehearse
