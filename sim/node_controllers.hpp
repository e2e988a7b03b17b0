// Simulated controllers for nodes and namespaces: the unschedulable taint, pods of deleted Nodes, and terminating
// namespaces. No I/O.
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

}  // namespace haulout::sim
