// What vanishes by itself: Leases whose owners have gone, and Events that are old.
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

// Removes a Lease when it has owners and none of them exists any more: an owner is its name and its UID. Other kinds
// are left alone.
class OwnerGarbageCollector {
 public:
  explicit OwnerGarbageCollector(World& world);
  // Looks at every Lease: after the controller was stopped.
  void resync();

 private:
  void on_change(const Change& change);
  bool orphaned(const Json& lease) const;
  void plan(const Json& lease, Duration lag, Duration jitter);
  void collect(const Key& key, const std::string& uid);

  World& world_;
};

// Removes Events a fixed time after they were last written, as etcd does by their lease.
class EventExpiry {
 public:
  explicit EventExpiry(World& world);

 private:
  void expire(const Key& key, const std::string& version);

  World& world_;
};

}  // namespace haulout::sim
