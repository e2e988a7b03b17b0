// Simulates the attaching of volumes: the attach-detach controller of the control plane, and the external-attacher of
// the CSI driver, which attaches and detaches volumes according to the VolumeAttachments. No I/O.
//
// A bound pod gets a VolumeAttachment for each claim that is bound to a CSI volume, or to a volume that was migrated to
// CSI. It gets none if the CSIDriver needs none, or while another node has a volume that only one node may use. When
// the node's last pod that uses the volume is deleted or finished, the volume is unmounted and the controller requests
// the deletion of the VolumeAttachment. A finalizer keeps the VolumeAttachment until the driver has detached the
// volume. The Node's status lists a volume as in use until it is unmounted, and as attached until the controller
// requests the deletion.
//
// The simulation continues two kinds of loaded VolumeAttachments: those that no pod of the node uses any more and that
// the Node's status lists, and terminating ones, unless their driver had failed to detach. It ignores other
// VolumeAttachments that no pod of the node ever used. Annotations of a PersistentVolume:
//   sim.haulout.dev/unmounts-after: 1h       time that the kubelet hangs before it unmounts the volume
//   sim.haulout.dev/detaches-after: 90s      time that the driver needs to detach
//   sim.haulout.dev/detach-fails-for: 60s    counted from the driver's first try; meanwhile it sets status.detachError
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

// Returns the PersistentVolumes to which the pod's claims are bound. Leaves out claims that are not bound.
std::vector<Object> volumes_of(const Store& store, const Json& pod);

// Returns the pod's PersistentVolumes that must be attached to its node and are not attached.
std::vector<Object> not_attached(const Store& store, const Json& pod);

// Runs both controllers. Borrows the world.
class Volumes {
 public:
  explicit Volumes(World& world);

 private:
  struct Place {
    std::string volume;  // name of the PersistentVolume
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
  // tell_in_use() and tell_attached() update the lists in Node.status: the volumes that the kubelet uses, and those
  // that the controller has attached.
  void tell_in_use(const Place& place, const Json& volume, bool in_use);
  void tell_attached(const Place& place, const Json& volume, bool attached);
  void ask_to_detach(const Key& attachment);
  // Simulates the CSI driver, which begins to detach the volume when the VolumeAttachment is terminating, whichever
  // client deleted it.
  void detach(const Key& key, const Json& attachment);
  void try_to_detach(const Key& key, const std::string& uid, TimePoint first_try);
  bool used(const Place& place) const;
  // Returns the name by which the Node's status lists the volume.
  std::string unique_name(const Place& place, const Json& volume) const;
  // Returns true if the Node's status lists the volume as in use or as attached.
  bool told(const Place& place) const;

  World& world_;
};

}  // namespace haulout::sim
