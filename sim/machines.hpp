// The machines under the nodes: they go down, come up again with another boot id, and register anew.
#pragma once

#include "sim/kubelet.hpp"

namespace haulout::sim {

class Machines {
 public:
  Machines(World& world, Kubelet& kubelet) : world_(world), kubelet_(kubelet) {}

  // The kubelet stops and its Node is NotReady, at once; its pods stay and are not Ready.
  void down(const std::string& node);
  // The kubelet is back: the Node is Ready under that boot id (empty: the one it had), and its pods are Ready a pod's
  // start later.
  void up(const std::string& node, const std::string& boot_id);
  // Its Node object is deleted and registers again: a new UID, the labels but Haulout's, no annotations, not cordoned.
  void register_again(const std::string& node);
  // As a kernel makes one up.
  std::string new_boot_id();

 private:
  void set_node_ready(const std::string& node, const char* status, const char* reason, const char* message);
  void set_pods_ready(const std::string& node, bool ready);

  World& world_;
  Kubelet& kubelet_;
  unsigned boots_ = 0;
};

}  // namespace haulout::sim
