// Simulated controllers of workloads, and the pods that they create. Borrows the world. No I/O; nothing fails.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "sim/objects.hpp"
#include "sim/replica_sets.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// Returns an ownerReference to `owner`, with controller: true.
Json owner_reference(const Json& owner);

// Returns a new pod with this name from the controller's template. The API server and its admission plug-ins write
// fields into pods that the template does not have (LimitRange, overhead of the RuntimeClass, priority, sidecars of a
// webhook). These fields are copied from `sibling`, a pod of the same controller. If `sibling` is null, missing
// resource requests get the value of the limits, as on every API server.
Json pod_of_template(const Json& controller, const Json& sibling, const std::string& name);

// Creates replacements of deleted pods: ReplicaSet (with its Deployment), StatefulSet, DaemonSet. Pods of Jobs and pods
// without a controller are not replaced. A controller checks all pods of a workload Timing::controller_lag after any
// change of the workload or its pods. A ReplicaSet also releases and adopts pods, see sim/replica_sets.hpp. Annotation
// of a Deployment:
//   sim.haulout.dev/template-hash: "true"  its ReplicaSet has the label pod-template-hash in selector and template
class Workloads {
 public:
  explicit Workloads(World& world);
  // Checks every workload again, after the usual lag.
  void resync();
  const Claims& claims() const { return claims_; }

 private:
  void on_change(const Change& change);
  void on_pod(const Change& change);
  void look_later(const Key& controller);
  void reconcile(const Key& controller);
  void reconcile_deployment(const Key& key, const Json& deployment);
  void reconcile_replica_set(const Key& key, const Object& set);
  void reconcile_stateful_set(const Key& key, const Json& set);
  void reconcile_daemon_set(const Key& key, const Json& set);
  // Returns the objects with this controller, sorted by name.
  std::vector<Object> controlled_by(const Json& controller, std::string_view resource) const;
  void remember(const Object& pod);
  // Returns false if a quota refuses the pod. Then the controller tries again later.
  bool create_pod(const Json& owner, const std::string& name, const std::string& node);
  void try_again(const Key& controller);

  World& world_;
  Claims claims_;
  std::unordered_set<Key, HashOfKey> planned_;
  std::map<Key, unsigned> refusals_;  // number of pods of each controller that a quota has refused in a row
  std::unordered_map<std::string, Object>
      newest_;  // newest pod of each controller, even if deleted; key: UID of the controller
};

// Removes the finalizer `batch.kubernetes.io/job-tracking` from pods of Jobs that have ended, as the Job controller
// does after it has counted them. Without that, such a pod would never be deleted. Works even if the Job does not
// exist. The simulation implements nothing else of Jobs.
class JobTracking {
 public:
  explicit JobTracking(World& world);

 private:
  void let_go(const Key& pod, const std::string& uid);
  World& world_;
};

}  // namespace haulout::sim
