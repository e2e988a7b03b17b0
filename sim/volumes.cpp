#include "sim/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/codec.hpp"
#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {
namespace {

// Pause before a controller or driver retries a step that is not possible yet.
constexpr Duration retry_interval = std::chrono::seconds(5);

constexpr const char* node_lists[] = {"/status/volumesInUse", "/status/volumesAttached"};

// Entries of volumesInUse are names; entries of volumesAttached are objects with a name.
std::string name_of_entry(const Json& entry) {
  return entry.is_string() ? entry.get<std::string>() : text(entry, "/name");
}

// Returns the driver of the volume. The spec of a volume that was migrated to CSI names no driver; an annotation does.
std::string driver_of(const Json& volume) {
  const std::string driver = text(volume, "/spec/csi/driver");
  return driver.empty() ? annotation(volume, "pv.kubernetes.io/migrated-to") : driver;
}

// Adds `entry` to `list` of the Node's status, or removes it if `has` is false.
void tell(Store& store, const std::string& node, const char* list, const Json& entry, bool has) {
  store.modify({"nodes", "", node}, [&](Json& next) {
    Json entries = at(next, fmt::format("/status/{}", list).c_str());
    if (!entries.is_array()) entries = Json::array();
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Json& present) {
      return name_of_entry(present) == name_of_entry(entry);
    });
    if ((found != entries.end()) == has) return;
    if (has)
      entries.push_back(entry);
    else
      entries.erase(found);
    next["status"][list] = std::move(entries);
  });
}

bool shared_by_nodes(const Json& volume) {
  const Json& modes = at(volume, "/spec/accessModes");
  return std::any_of(modes.begin(), modes.end(),
                     [](const Json& mode) { return mode == "ReadWriteMany" || mode == "ReadOnlyMany"; });
}

// Returns the claim's PersistentVolume; empty if there is none. If the claim was deleted before its pods (with its
// namespace), finds the volume by its claimRef.
std::string volume_of(const Store& store, const Key& claim) {
  if (const Object found = store.get(claim)) return text(*found, "/spec/volumeName");
  const auto volumes = store.list("persistentvolumes", {}, By::claim_ref, claim.ns + '/' + claim.name);
  return volumes.empty() ? std::string() : name_of(*volumes.front());
}

bool needs_attachment(const Store& store, const Json& volume) {
  const std::string name = driver_of(volume);
  if (name.empty()) return false;
  const Object driver = store.get({"csidrivers", "", name});
  return !driver || at(*driver, "/spec/attachRequired") != Json(false);
}

Object attachment_of(const Store& store, const std::string& volume, const std::string& node) {
  for (const Object& attachment : store.list("volumeattachments", {}, By::volume, volume))
    if (text(*attachment, "/spec/nodeName") == node) return attachment;
  return nullptr;
}

}  // namespace

std::vector<Object> volumes_of(const Store& store, const Json& pod) {
  std::vector<Object> volumes;
  for (const std::string& claim : claims_of(pod))
    if (Object volume =
            store.get({"persistentvolumes", "", volume_of(store, {"persistentvolumeclaims", ns_of(pod), claim})}))
      volumes.push_back(std::move(volume));
  return volumes;
}

std::vector<Object> not_attached(const Store& store, const Json& pod) {
  std::vector<Object> missing;
  for (Object& volume : volumes_of(store, pod)) {
    if (!needs_attachment(store, *volume)) continue;
    const Object attachment = attachment_of(store, name_of(*volume), text(pod, "/spec/nodeName"));
    if (!attachment || terminating(*attachment) || !flag(*attachment, "/status/attached"))
      missing.push_back(std::move(volume));
  }
  return missing;
}

Volumes::Volumes(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) { on_change(change); });
}

Volumes::Place Volumes::place_of(const Json& attachment) {
  return {text(attachment, "/spec/source/persistentVolumeName"), text(attachment, "/spec/nodeName")};
}

void Volumes::on_change(const Change& change) {
  const std::string& resource = change.key.resource;
  if (resource == "pods") {
    // The attachment of its volumes is affected only if the pod is new, deleted, finished, or on another node.
    const bool moved = change.type != ChangeType::modified || pod_finished(*change.object) ||
                       text(*change.before, "/spec/nodeName") != text(*change.object, "/spec/nodeName");
    if (moved) look_later(*change.object);
  } else if (resource == "persistentvolumeclaims" && change.type != ChangeType::deleted) {
    for (const Object& pod : world_.store.list("pods", change.key.ns, By::claim, change.key.name)) look_later(*pod);
  } else if (resource == "volumeattachments" && change.restored) {
    take_up(change);
  } else if (resource == "volumeattachments" && change.type != ChangeType::deleted) {
    attachment_changed(change);
  }
}

// After a simulated restore of etcd: plans again the steps of the driver that were planned, or that the restore has
// undone.
void Volumes::take_up(const Change& change) {
  const Json& attachment = *change.object;
  const Place place = place_of(attachment);
  world_.agenda.after(world_.timing.unmount, [this, place] { look(place, world_.now()); });
  if (change.type == ChangeType::deleted) return;
  const Object volume = world_.store.get({"persistentvolumes", "", place.volume});
  if (terminating(attachment))
    detach(change.key, attachment);
  else if (volume && !flag(attachment, "/status/attached"))
    attach_later(change.key, place, *volume);
}

void Volumes::attachment_changed(const Change& change) {
  const Json& attachment = *change.object;
  const bool loaded = change.type == ChangeType::added;
  if (terminating(attachment)) {
    const bool fails = !at(attachment, "/status/detachError").is_null();
    if (loaded ? !fails : !terminating(*change.before)) detach(change.key, attachment);
  } else if (loaded && flag(attachment, "/status/attached")) {
    world_.agenda.after(world_.timing.unmount, [this, place = place_of(attachment)] {
      if (told(place)) look(place, world_.now());
    });
  }
}

void Volumes::look_later(const Json& pod) {
  const std::string node = text(pod, "/spec/nodeName");
  if (node.empty() || at(pod, "/spec/volumes").is_null()) return;
  for (const std::string& claim : claims_of(pod))
    world_.agenda.after(world_.timing.unmount, [this, node, key = Key{"persistentvolumeclaims", ns_of(pod), claim}] {
      const std::string volume = volume_of(world_.store, key);
      if (!volume.empty()) look({volume, node}, world_.now());
    });
}

bool Volumes::used(const Place& place) const {
  for (const Object& pod : world_.store.list("pods", {}, By::node, place.node)) {
    if (pod_finished(*pod)) continue;
    for (const std::string& claim : claims_of(*pod))
      if (volume_of(world_.store, {"persistentvolumeclaims", ns_of(*pod), claim}) == place.volume) return true;
  }
  return false;
}

// The unique name of a volume contains its CSI handle, which is not known here for a migrated volume. But the name of
// the VolumeAttachment has a hash of the handle, so this searches the Node's lists for the entry with the same hash.
std::string Volumes::unique_name(const Place& place, const Json& volume) const {
  const std::string handle = text(volume, "/spec/csi/volumeHandle");
  const Object node = world_.store.get({"nodes", "", place.node});
  if (const Object attachment = handle.empty() ? attachment_of(world_.store, place.volume, place.node) : nullptr;
      attachment && node)
    for (const char* list : node_lists)
      for (const Json& entry : at(*node, list))
        if (k8s::attachment_name(name_of_entry(entry), place.node) == name_of(*attachment)) return name_of_entry(entry);
  return fmt::format("kubernetes.io/csi/{}^{}", driver_of(volume), handle.empty() ? place.volume : handle);
}

bool Volumes::told(const Place& place) const {
  const Object volume = world_.store.get({"persistentvolumes", "", place.volume});
  const Object node = world_.store.get({"nodes", "", place.node});
  if (!volume || !node) return false;
  const std::string name = unique_name(place, *volume);
  return std::any_of(std::begin(node_lists), std::end(node_lists), [&](const char* list) {
    const Json& entries = at(*node, list);
    return std::any_of(entries.begin(), entries.end(), [&](const Json& entry) { return name_of_entry(entry) == name; });
  });
}

void Volumes::look(const Place& place, TimePoint unused_since) {
  const Object volume = world_.store.get({"persistentvolumes", "", place.volume});
  const Object attachment = attachment_of(world_.store, place.volume, place.node);
  // A loaded VolumeAttachment is detached even if its volume is of a kind for which the simulation creates none.
  if (!volume || (!attachment && !needs_attachment(world_.store, *volume))) return;
  const auto again = [&] {
    world_.agenda.after(retry_interval, [this, place, unused_since] { look(place, unused_since); });
  };
  const bool in_use = used(place);
  const bool silent = world_.switches.stopped_kubelets.count(place.node) > 0;
  const Duration unused = world_.now() - unused_since;
  if (!in_use && unused < annotated(*volume, "sim.haulout.dev/unmounts-after", Duration::zero())) return again();
  if (!silent) tell_in_use(place, *volume, in_use);
  if (!world_.switches.attach_detach) return again();
  if (in_use) {
    if (!attachment) return attach(place, *volume);
    if (flag(*attachment, "/status/attached")) tell_attached(place, *volume, true);
    if (terminating(*attachment)) again();  // looks again after the deletion, to attach the volume again
    return;
  }
  if (!attachment || terminating(*attachment)) return;
  // A stopped kubelet does not report that it has unmounted the volume. After `force_detach` the controller does not
  // wait for that any longer.
  if (silent && unused < world_.timing.force_detach) return again();
  tell_attached(place, *volume, false);
  ask_to_detach({"volumeattachments", "", name_of(*attachment)});
}

void Volumes::attach(const Place& place, const Json& volume) {
  if (!shared_by_nodes(volume) && !world_.store.list("volumeattachments", {}, By::volume, place.volume).empty()) {
    world_.agenda.after(world_.timing.attach_retry, [this, place] { look(place, world_.now()); });
    return;
  }
  const std::string driver = driver_of(volume);
  const Object made = world_.store.create(
      "volumeattachments",
      {{"metadata",
        {{"name", k8s::attachment_name(unique_name(place, volume), place.node)},
         {"finalizers", Json::array({"external-attacher/" + driver})}}},
       {"spec", {{"attacher", driver}, {"nodeName", place.node}, {"source", {{"persistentVolumeName", place.volume}}}}},
       {"status", {{"attached", false}}}});
  if (made) attach_later({"volumeattachments", "", name_of(*made)}, place, volume);
}

void Volumes::attach_later(const Key& key, const Place& place, const Json& volume) {
  world_.agenda.after(world_.timing.attach, [this, place, volume, key] {
    const Object attachment = world_.store.get(key);
    if (!attachment || terminating(*attachment)) return;
    world_.store.modify(key, [](Json& next) { next["status"]["attached"] = true; });
    tell_attached(place, volume, true);
  });
}

void Volumes::tell_in_use(const Place& place, const Json& volume, bool in_use) {
  tell(world_.store, place.node, "volumesInUse", unique_name(place, volume), in_use);
}

void Volumes::tell_attached(const Place& place, const Json& volume, bool attached) {
  tell(world_.store, place.node, "volumesAttached", {{"name", unique_name(place, volume)}, {"devicePath", ""}},
       attached);
}

void Volumes::ask_to_detach(const Key& key) {
  // If a loaded VolumeAttachment has no finalizer, add it, so that it is deleted only after the driver has detached the
  // volume.
  world_.store.modify(key, [](Json& next) {
    if (!has_finalizers(next))
      next["metadata"]["finalizers"] = Json::array({"external-attacher/" + text(next, "/spec/attacher")});
  });
  delete_gracefully(world_, key, std::nullopt);
}

void Volumes::detach(const Key& key, const Json& attachment) {
  const Object volume = world_.store.get({"persistentvolumes", "", place_of(attachment).volume});
  const Duration takes =
      volume ? annotated(*volume, "sim.haulout.dev/detaches-after", world_.timing.detach) : world_.timing.detach;
  world_.agenda.after(takes, [this, key, uid = uid_of(attachment)] { try_to_detach(key, uid, world_.now()); });
}

void Volumes::try_to_detach(const Key& key, const std::string& uid, TimePoint first_try) {
  const Object attachment = world_.store.get(key);
  if (!attachment || uid_of(*attachment) != uid) return;
  const std::string name = place_of(*attachment).volume;
  const Object volume = world_.store.get({"persistentvolumes", "", name});
  const Duration fails =
      volume ? annotated(*volume, "sim.haulout.dev/detach-fails-for", Duration::zero()) : Duration::zero();
  if (world_.now() - first_try < fails) {
    world_.store.modify(key, [&](Json& next) {
      next["status"]["detachError"] = {{"time", k8s::format_time(world_.wall_now())},
                                       {"message", "rpc error: code = Internal desc = volume " + name + " is busy"}};
    });
    world_.agenda.after(retry_interval, [this, key, uid, first_try] { try_to_detach(key, uid, first_try); });
    return;
  }
  world_.store.modify(key, [](Json& next) { next["metadata"].erase("finalizers"); });
}

}  // namespace haulout::sim
