// The simulated machines under the Nodes: they go down, come up with another boot ID, and register again. No I/O.
#pragma once

#include "sim/kubelet.hpp"

namespace haulout::sim {

class Machines {
 public:
  Machines(World& world, Kubelet& kubelet) : world_(world), kubelet_(kubelet) {}

  // Takes the machine down: stops the kubelet and makes its Node NotReady, at once. The pods stay, but are not Ready.
  void down(const std::string& node);
  // Brings the machine up: starts the kubelet and makes the Node Ready, with `boot_id` (empty keeps the old boot ID).
  // Its pods become Ready after Timing::pod_start.
  void up(const std::string& node, const std::string& boot_id);
  // Deletes the Node and registers it again: new UID, no annotations, not cordoned, all labels except Haulout's.
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
