#include "sim/garbage_collector.hpp"

#include <algorithm>

#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {
namespace {

bool owned_by(const Json& object, const std::string& uid) {
  const Json& owners = at(object, "/metadata/ownerReferences");
  return std::any_of(owners.begin(), owners.end(), [&](const Json& owner) { return text(owner, "/uid") == uid; });
}

}  // namespace

OwnerGarbageCollector::OwnerGarbageCollector(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) { on_change(change); });
}

void OwnerGarbageCollector::on_change(const Change& change) {
  const Timing& timing = world_.timing;
  if (change.type == ChangeType::deleted) {
    const std::string uid = uid_of(*change.object);
    for (const Object& lease : world_.store.list("leases"))
      if (owned_by(*lease, uid)) plan(*lease, timing.gc_lag, timing.gc_jitter);
    return;
  }
  if (change.key.resource != "leases" || !orphaned(*change.object)) return;
  constexpr const char* owners = "/metadata/ownerReferences";
  const bool same_owners = change.before && at(*change.before, owners) == at(*change.object, owners);
  if (!same_owners) plan(*change.object, timing.dead_owner_lag, timing.dead_owner_jitter);
}

bool OwnerGarbageCollector::orphaned(const Json& lease) const {
  const Json& owners = at(lease, "/metadata/ownerReferences");
  const auto gone = [&](const Json& owner) {
    const ResourceInfo* info = find_kind(text(owner, "/kind"));
    if (!info) return false;  // unknown kind: assume that the owner exists
    const Object found = world_.store.get(
        {std::string(info->resource), info->namespaced ? ns_of(lease) : std::string(), text(owner, "/name")});
    return !found || uid_of(*found) != text(owner, "/uid");
  };
  return !owners.empty() && std::all_of(owners.begin(), owners.end(), gone);
}

void OwnerGarbageCollector::plan(const Json& lease, Duration lag, Duration jitter) {
  world_.agenda.after(
      lag + world_.rng.between(Duration::zero(), jitter),
      [this, key = Key{"leases", ns_of(lease), name_of(lease)}, uid = uid_of(lease)] { collect(key, uid); });
}

void OwnerGarbageCollector::collect(const Key& key, const std::string& uid) {
  const Object lease = world_.store.get(key);
  if (!world_.switches.garbage_collector || !lease || uid_of(*lease) != uid || !orphaned(*lease)) return;
  delete_gracefully(world_, key, std::nullopt);
}

void OwnerGarbageCollector::resync() {
  for (const Object& lease : world_.store.list("leases"))
    if (orphaned(*lease)) plan(*lease, world_.timing.gc_lag, world_.timing.gc_jitter);
}

EventExpiry::EventExpiry(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "events" || change.type == ChangeType::deleted) return;
    world_.agenda.after(world_.timing.event_ttl,
                        [this, key = change.key, version = text(*change.object, "/metadata/resourceVersion")] {
                          expire(key, version);
                        });
  });
}

void EventExpiry::expire(const Key& key, const std::string& version) {
  const Object event = world_.store.get(key);
  if (event && text(*event, "/metadata/resourceVersion") == version) world_.store.remove(key);
}

}  // namespace haulout::sim
