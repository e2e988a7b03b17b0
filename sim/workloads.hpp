// Simulated controllers that create replacements of deleted pods: ReplicaSet (with its Deployment), StatefulSet,
// DaemonSet. Pods of Jobs and bare pods are not replaced. A controller checks all pods of a workload
// Timing::controller_lag after any change of the workload or its pods.
#pragma once

#include <map>
#include <set>

#include "sim/world.hpp"

namespace haulout::sim {

class Workloads {
 public:
  explicit Workloads(World& world);
  void resync();

 private:
  void on_change(const Change& change);
  void look_later(const Key& controller);
  void reconcile(const Key& controller);
  void reconcile_deployment(const Key& key, const Json& deployment);
  void reconcile_replica_set(const Key& key, const Json& set);
  void reconcile_stateful_set(const Key& key, const Json& set);
  void reconcile_daemon_set(const Key& key, const Json& set);
  // Returns the objects with this controller, sorted by name.
  std::vector<Object> controlled_by(const Json& controller, std::string_view resource) const;
  void remember(const Object& pod);
  void create_pod(const Json& owner, const std::string& name, const std::string& node);

  World& world_;
  std::set<Key> planned_;
  std::map<std::string, Object> newest_;  // newest pod of each controller, even if deleted; key: UID of the controller
};

}  // namespace haulout::sim
