// The controllers that bring pods back: ReplicaSet (with its Deployment), StatefulSet, DaemonSet. Jobs and bare pods do
// not return. Each looks at its whole set a lag after anything of it has changed.
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
  // Sorted by name.
  std::vector<Object> controlled_by(const Json& controller, std::string_view resource) const;
  void remember(const Object& pod);
  void create_pod(const Json& owner, const std::string& name, const std::string& node);

  World& world_;
  std::set<Key> planned_;
  std::map<std::string, Object> newest_;  // pod, there or not, by its controller's uid
};

}  // namespace haulout::sim
