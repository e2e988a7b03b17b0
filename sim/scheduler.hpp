// Binds pods to nodes where there is room for them (placement/room.hpp). Decides when it sees the pod and binds
// scheduler_lag later, so that a cordon can come in between, as it does in a real cluster. A pod that found no room is
// tried again when a node changes or a pod goes. A pod with scheduling gates finds none. Nobody is preempted: who could
// take the place of pods of lower priority is nominated for it (status.nominatedNodeName), and waits.
#pragma once

#include <map>
#include <string>

#include "placement/room.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

class Scheduler {
 public:
  explicit Scheduler(World& world);
  // Tries every pod that waits for a node.
  void retry();

 private:
  struct Standing {
    Object pod;
    std::string node;
  };
  void note(const Change& change);
  void build_room();
  // The pod counts where it stands, or where it has been decided that it will.
  void settle(const Key& pod);
  void consider(const Key& key, const std::string& uid);
  void bind(const Key& key, const std::string& uid, const std::string& node);
  void mark_unscheduled(const Key& key, const Json& pod, const std::string& reason, const std::string& why,
                        const std::string& nominated);
  void retry_later();

  World& world_;
  // Pods that are being decided on or bound, by uid; the node is empty until it is chosen, then it counts as taken.
  std::map<std::string, std::string> under_way_;
  // What stands where, kept up with every change once somebody has asked.
  std::optional<placement::Room> room_;
  std::map<Key, Standing> standing_;  // in room_
  bool retry_planned_ = false;
  bool no_room_ = false;  // for some pod, when it was last looked at
};

}  // namespace haulout::sim
