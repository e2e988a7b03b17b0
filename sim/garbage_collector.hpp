// Simulated controllers that delete what Kubernetes deletes by itself: Leases whose owners are deleted, and old Events.
// No I/O.
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

// Deletes a Lease if it has owners and none of them exists any more. An owner exists if an object has its name and its
// UID. Ignores other kinds of objects.
class OwnerGarbageCollector {
 public:
  explicit OwnerGarbageCollector(World& world);
  // Checks every Lease; for use after the controller was stopped.
  void resync();

 private:
  void on_change(const Change& change);
  bool orphaned(const Json& lease) const;
  void plan(const Json& lease, Duration lag, Duration jitter);
  void collect(const Key& key, const std::string& uid);

  World& world_;
};

// Removes an Event a fixed time (Timing::event_ttl) after its last write, as etcd does with its leases.
class EventExpiry {
 public:
  explicit EventExpiry(World& world);

 private:
  void expire(const Key& key, const std::string& version);

  World& world_;
};

}  // namespace haulout::sim
