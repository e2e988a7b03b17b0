// The simulated machines under the Nodes, and their kubelets. Borrows the world, which calls them until its last step,
// so they must live as long as the world runs. No I/O; nothing fails.
#pragma once

#include <map>
#include <unordered_map>

#include "sim/world.hpp"

namespace haulout::sim {

// The simulated kubelets of all nodes. They start bound pods, set them Ready, stop terminating pods, set these to
// Failed, and remove them from the API. As in Kubernetes since 1.27, every pod becomes Failed or Succeeded before its
// final delete. The stop of a pod that was terminating when it was loaded continues from its present state.
class Kubelet {
 public:
  explicit Kubelet(World& world);
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;
  // Checks every pod of the node again. To be called when a stopped kubelet starts again.
  void resync(const std::string& node);

 private:
  void look(const Key& key, const Json& pod);
  void plan_start(const Key& key, const Json& pod);
  // Called when a volume has been attached to the node. Checks the pods of the node again, because some may have waited
  // for this volume.
  void volume_attached(const std::string& node);
  void start(const Key& key, const std::string& uid);
  void plan_stop(const Key& key, const Json& pod);
  void plan_loaded_stop(const Key& key, const Json& pod);
  void stop(const Key& key, const std::string& uid, std::uint64_t plan);
  void report_stopped(const Key& key, const std::string& uid);
  Duration wanted(const Json& pod) const;
  bool stopped_kubelet(const Json& pod) const;

  struct Stopping {
    TimePoint asked;         // when the kubelet saw that the pod was terminating
    TimePoint done;          // when the pod will have stopped
    std::uint64_t plan = 0;  // number of the latest planned step of this pod; earlier steps are void
    bool finished = false;
  };
  World& world_;
  std::uint64_t plans_ = 0;
  std::map<std::string, TimePoint> reporting_until_;    // time at which a kubelet ends its last report; key: node
  std::unordered_map<std::string, Stopping> stopping_;  // the pods that are being stopped; key: UID
  std::unordered_map<std::string, bool> starting_;      // the pods that are being started; key: UID
};

// The machines under the Nodes: they go down, boot with another boot ID, and register their Nodes again.
class Machines {
 public:
  Machines(World& world, Kubelet& kubelet) : world_(world), kubelet_(kubelet) {}

  // Takes the machine down: stops the kubelet and sets its Node to NotReady immediately. The pods stay, but are not
  // Ready.
  void down(const std::string& node);
  // Brings the machine up: starts the kubelet and sets the Node to Ready, with `boot_id` (empty keeps the old boot ID).
  // Its pods become Ready after Timing::pod_start.
  void up(const std::string& node, const std::string& boot_id);
  // Deletes the Node and creates it again: new UID, no annotations, not cordoned, without Haulout's labels and
  // conditions.
  void register_again(const std::string& node);
  // Returns a new boot ID in the format of the kernel, unique in this simulation.
  std::string new_boot_id();

 private:
  void set_node_ready(const std::string& node, const char* status, const char* reason, const char* message);
  void set_pods_ready(const std::string& node, bool ready);

  World& world_;
  Kubelet& kubelet_;
  unsigned boots_ = 0;
};

}  // namespace haulout::sim
