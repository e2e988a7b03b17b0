// The simulated scheduler: binds pods to nodes with capacity for them (placement/room.hpp). It chooses a node when it
// sees the pod, and binds the pod Timing::scheduler_lag later, so that a cordon can happen in between, as in a real
// cluster. A pod goes only to nodes that its bound PersistentVolumes can reach; a claim that is not bound restricts no
// node. A pod that fits on no node is tried again when a node changes or a pod is deleted. A pod with scheduling
// gates is not bound. The scheduler preempts no pods: if a pod would fit in place of pods of lower priority, it gets
// status.nominatedNodeName and waits. Borrows the world. No I/O; nothing fails.
#pragma once

#include <string>
#include <unordered_map>

#include "placement/room.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

class Scheduler {
 public:
  explicit Scheduler(World& world);
  // Tries immediately to schedule every pod without a node.
  void retry();

 private:
  struct Standing {
    Object pod;
    std::string node;
  };
  void note(const Change& change);
  void build_room();
  // Counts the pod in `room_` on its node or, if it is not bound yet, on the node that was chosen for it.
  void settle(const Key& pod);
  void consider(const Key& key, const std::string& uid);
  void bind(const Key& key, const std::string& uid, const std::string& node);
  void mark_unscheduled(const Key& key, const Json& pod, const std::string& reason, const std::string& why,
                        const std::string& nominated);
  void retry_later();

  World& world_;
  // The pods that are being scheduled. Key: UID; value: the chosen node, empty until one is chosen. From then on the
  // pod counts as using capacity of that node.
  std::unordered_map<std::string, std::string> under_way_;
  // Pods and free capacity by node. Built when the first pod is scheduled, then updated with every change.
  std::optional<placement::Room> room_;
  std::unordered_map<Key, Standing, HashOfKey> standing_;  // the pods that `room_` counts, and on which node
  bool retry_planned_ = false;
  bool no_room_ = false;  // true if a pod fitted on no node when it was last tried
};

}  // namespace haulout::sim
