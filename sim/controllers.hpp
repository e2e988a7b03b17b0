// Small controllers of the simulated control plane. They taint cordoned Nodes, and delete pods of deleted Nodes,
// objects of terminating namespaces, Leases without an owner, and old Events. No I/O.
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

// Keeps the taint node.kubernetes.io/unschedulable in step with spec.unschedulable.
class NodeLifecycle {
 public:
  explicit NodeLifecycle(World& world);

 private:
  void sync(const std::string& node);
  World& world_;
};

// Removes pods that are bound to a Node that no longer exists.
class PodGarbageCollector {
 public:
  explicit PodGarbageCollector(World& world);

 private:
  void collect(const std::string& node);
  World& world_;
};

// Deletes all objects of a terminating namespace, then the namespace.
class NamespaceController {
 public:
  explicit NamespaceController(World& world);

 private:
  void empty(const std::string& ns);
  void finish(const std::string& ns);
  World& world_;
};

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
