// Volumes: the attach-detach controller of the control plane, and the CSI driver's external-attacher that does what its
// VolumeAttachments ask for.
//
// A pod on a node whose claim is bound to a volume of CSI, or one that was migrated to it, gets a VolumeAttachment,
// unless the CSIDriver says that it needs none, or another node has the volume and its access mode allows one alone.
// When the last pod of the node that uses it has gone (or finished), the volume is unmounted and the VolumeAttachment
// deleted; its finalizer holds it until the driver has detached. The Node's status names what its kubelet has in use,
// until that is unmounted, and what the controller has attached, until it asks for the detaching. What a snapshot
// caught on that way goes on: a VolumeAttachment that no pod of the node uses any more and that its Node names, and one
// that is terminating, unless the driver had failed to detach it. Others that no pod of the node ever used are left
// alone. A PersistentVolume may say:
//   sim.haulout.dev/unmounts-after: 1h       the kubelet hangs that long before it has unmounted it
//   sim.haulout.dev/detaches-after: 90s      how long the driver takes
//   sim.haulout.dev/detach-fails-for: 60s    from its first try on; status.detachError says so
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

// PersistentVolumes of the pod that have to be attached to its node, and are not.
std::vector<Object> not_attached(const Store& store, const Json& pod);

class Volumes {
 public:
  explicit Volumes(World& world);

 private:
  struct Place {
    std::string volume;  // PersistentVolume
    std::string node;
  };
  static Place place_of(const Json& attachment);
  void on_change(const Change& change);
  void attachment_changed(const Change& change);
  void take_up(const Change& change);
  void look_later(const Json& pod);
  void look(const Place& place, TimePoint unused_since);
  void attach(const Place& place, const Json& volume);
  void attach_later(const Key& attachment, const Place& place, const Json& volume);
  // Node.status: what the kubelet has in use, what the controller has attached.
  void tell_in_use(const Place& place, const Json& volume, bool in_use);
  void tell_attached(const Place& place, const Json& volume, bool attached);
  void ask_to_detach(const Key& attachment);
  // The driver, from then on that its VolumeAttachment is terminating, whoever asked for it.
  void detach(const Key& key, const Json& attachment);
  void try_to_detach(const Key& key, const std::string& uid, TimePoint first_try);
  bool used(const Place& place) const;
  // How the Node's status names it.
  std::string unique_name(const Place& place, const Json& volume) const;
  // The Node's status says that somebody has it.
  bool told(const Place& place) const;

  World& world_;
};

}  // namespace haulout::sim
