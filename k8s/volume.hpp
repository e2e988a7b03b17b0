// VolumeAttachments, CSINodes, PersistentVolumes and PersistentVolumeClaims: the structs, their places in the API and
// their decoders. Pure.
#pragma once

#include "k8s/kind.hpp"

namespace haulout::k8s {

// Requests that a volume be attached to a node; `attached` says whether it is. The volume is detached when this object
// is deleted, not before.
struct VolumeAttachment {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string node_name;
  std::string attacher;                          // the CSI driver
  std::string persistent_volume;                 // name of the PersistentVolume; empty for an inline volume
  std::optional<WallTime> deletion_timestamp{};  // time of the request to detach the volume
  std::string detach_error;                      // the driver's last error from detaching
  bool attached = false;                         // status.attached: the driver has attached the volume
  std::string attach_error;                      // the driver's last error from attaching

  bool deleting() const { return deletion_timestamp.has_value(); }
  bool operator==(const VolumeAttachment&) const = default;
};

template <>
struct Kind<VolumeAttachment> {
  static constexpr std::string_view name = "VolumeAttachment";
  static constexpr Api api{"storage.k8s.io/v1", "volumeattachments", Scope::cluster,
                           Names::ours,         "VolumeAttachment",  "VolumeAttachments"};
  static constexpr ListBudget budget{500'000, 0, megabytes(16), kilobytes(4)};
  static constexpr std::array<std::string_view, 4> dropped = {"managedFields", "annotations", "inlineVolumeSpec",
                                                              "attachmentMetadata"};

  static void read(const codec::Object& json, VolumeAttachment& attachment) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, attachment);
    attachment.deletion_timestamp = metadata.time("deletionTimestamp");
    const auto spec = json.object("spec");
    attachment.node_name = spec.string("nodeName");
    attachment.attacher = spec.string("attacher");
    attachment.persistent_volume = spec.object("source").string("persistentVolumeName");
    const auto status = json.object("status");
    attachment.attached = status.boolean("attached");
    attachment.attach_error = status.object("attachError").string("message");
    attachment.detach_error = status.object("detachError").string("message");
  }
  // Counts only the name. The error texts of a VolumeAttachment come from its CSI driver, not from a tenant.
  static std::size_t text_in(const VolumeAttachment& attachment) { return attachment.name.size(); }
};

// What the CSI drivers of a node have registered. It has the name of the node.
struct CsiNode {
  std::string name;
  std::string uid;
};

template <>
struct Kind<CsiNode> {
  static constexpr std::string_view name = "CSINode";
  static constexpr Api api{"storage.k8s.io/v1", "csinodes", Scope::cluster, Names::ours, "CSINode", "CSINodes"};
  static constexpr std::array<std::string_view, 3> dropped = {"managedFields", "annotations", "drivers"};

  static void read(const codec::Object& json, CsiNode& node) { codec::read_identity(json.object("metadata"), node); }
};

struct PersistentVolume {
  std::string name;
  std::string uid;
  // spec.claimRef: the claim to which the volume is or was bound. Empty if there never was one.
  std::string claim_ns;
  std::string claim_name;
  std::string claim_uid;  // empty if a person has written the reference and no controller has bound the volume yet
  std::string phase;      // status.phase: "Bound", "Released", …
  // Values of the label kubernetes.io/hostname of the Nodes on which the volume can be used. Empty if it is not
  // restricted by hostname.
  std::vector<std::string> hostnames;
};

namespace codec::volume {

inline std::vector<std::string> hostnames_of(const Object& term) {
  std::vector<std::string> names;
  term.each("matchExpressions", [&](const Object& expression) {
    if (expression.string("key") == "kubernetes.io/hostname" && expression.string("operator") == "In")
      names = expression.string_list("values");
  });
  return names;
}

}  // namespace codec::volume

template <>
struct Kind<PersistentVolume> {
  static constexpr std::string_view name = "PersistentVolume";
  static constexpr Api api{
      "v1", "persistentvolumes", Scope::cluster, Names::of_objects, "PersistentVolume", "PersistentVolumes"};
  static constexpr std::array<std::string_view, 3> dropped = {"managedFields", "annotations", "csi"};

  static void read(const codec::Object& json, PersistentVolume& volume) {
    codec::read_identity(json.object("metadata"), volume);
    const auto claim = json.object("spec").object("claimRef");
    volume.claim_ns = claim.string("namespace");
    volume.claim_name = claim.string("name");
    volume.claim_uid = claim.string("uid");
    volume.phase = json.object("status").string("phase");
    // True if one of the terms has no hostnames. One matching term suffices, so the volume is then not restricted.
    bool anywhere = false;
    json.object("spec")
        .object("nodeAffinity")
        .object("required")
        .each("nodeSelectorTerms", [&](const codec::Object& term) {
          const auto names = codec::volume::hostnames_of(term);
          anywhere |= names.empty();
          volume.hostnames.insert(volume.hostnames.end(), names.begin(), names.end());
        });
    if (anywhere) volume.hostnames.clear();
  }
};

struct PersistentVolumeClaim {
  std::string ns;
  std::string name;
  std::string uid;
  std::string volume_name;  // name of the PersistentVolume to which the claim is bound; empty if it is not bound
  bool shared = false;      // spec.accessModes has ReadWriteMany or ReadOnlyMany: pods on several nodes may mount it
};

template <>
struct Kind<PersistentVolumeClaim> {
  static constexpr std::string_view name = "PersistentVolumeClaim";
  static constexpr Api api{"v1",
                           "persistentvolumeclaims",
                           Scope::namespaced,
                           Names::of_objects,
                           "PersistentVolumeClaim",
                           "PersistentVolumeClaims"};
  static constexpr std::array<std::string_view, 1> dropped = {"managedFields"};

  static void read(const codec::Object& json, PersistentVolumeClaim& claim) {
    codec::read_identity(json.object("metadata"), claim);
    const auto spec = json.object("spec");
    claim.volume_name = spec.string("volumeName");
    for (const std::string& mode : spec.string_list("accessModes"))
      claim.shared |= mode == "ReadWriteMany" || mode == "ReadOnlyMany";
  }
};

}  // namespace haulout::k8s
