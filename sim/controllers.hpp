// Small controllers of the simulated control plane. They taint cordoned Nodes, and delete the pods of deleted Nodes,
// the objects of terminating namespaces, Leases and CSINodes whose owners were deleted, and old Events. They borrow the
// world. No I/O; nothing fails.
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

// Adds the taint node.kubernetes.io/unschedulable to Nodes that are unschedulable, and removes it from others.
class NodeLifecycle {
 public:
  explicit NodeLifecycle(World& world);

 private:
  void sync(const std::string& node);
  World& world_;
};

// Removes the pods of a Node some time (Timing::pod_gc_lag) after its deletion, unless the Node was created again.
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

// Deletes a Lease, CSINode, EvictionRequest or Eviction if it has owners and none of them exists any more. An owner
// exists if an object of its kind has its name and its UID; owners of unknown kinds count as existing. The controller
// handles no other kind of objects.
class OwnerGarbageCollector {
 public:
  explicit OwnerGarbageCollector(World& world);
  // Checks every object of these kinds. To be called when the controller is started again.
  void resync();

 private:
  void on_change(const Change& change);
  bool orphaned(const Json& object) const;
  void plan(std::string_view resource, const Json& object, Duration lag, Duration jitter);
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
