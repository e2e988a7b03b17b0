// Decoders of volumes, their claims, and the namespaces of the claims.
#include "k8s/codec_objects.hpp"

namespace haulout::k8s::codec {
namespace {

std::vector<std::string> hostnames_of(const Object& term) {
  std::vector<std::string> names;
  term.each("matchExpressions", [&](const Object& expression) {
    if (expression.string("key") == "kubernetes.io/hostname" && expression.string("operator") == "In")
      names = expression.string_list("values");
  });
  return names;
}

}  // namespace

void read(const Object& json, NodeVolumes& volumes) {
  read_identity(json.object("metadata"), volumes);
  const auto status = json.object("status");
  volumes.held = status.string_list("volumesInUse");
  status.each("volumesAttached", [&](const Object& volume) { volumes.held.push_back(volume.string("name")); });
}

void read(const Object& json, VolumeAttachment& attachment) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, attachment);
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

void read(const Object& json, PersistentVolume& volume) {
  read_identity(json.object("metadata"), volume);
  const auto claim = json.object("spec").object("claimRef");
  volume.claim_ns = claim.string("namespace");
  volume.claim_name = claim.string("name");
  volume.claim_uid = claim.string("uid");
  volume.phase = json.object("status").string("phase");
  bool anywhere = false;  // true if one of the terms names no hostnames; one matching term suffices
  json.object("spec").object("nodeAffinity").object("required").each("nodeSelectorTerms", [&](const Object& term) {
    const auto names = hostnames_of(term);
    anywhere |= names.empty();
    volume.hostnames.insert(volume.hostnames.end(), names.begin(), names.end());
  });
  if (anywhere) volume.hostnames.clear();
}

void read(const Object& json, PersistentVolumeClaim& claim) {
  read_identity(json.object("metadata"), claim);
  claim.volume_name = json.object("spec").string("volumeName");
}

void read(const Object& json, Namespace& ns) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, ns);
  ns.deletion_timestamp = metadata.time("deletionTimestamp");
  json.object("status").each("conditions", [&](const Object& condition) {
    if (condition.string("status") == "True") ns.conditions.push_back(condition.string("message"));
  });
}

template <>
const std::vector<std::string_view>& dropped_keys<NodeVolumes>() {
  static const std::vector<std::string_view> keys = {"managedFields", "annotations", "images", "conditions"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<VolumeAttachment>() {
  static const std::vector<std::string_view> keys = {"managedFields", "annotations", "inlineVolumeSpec",
                                                     "attachmentMetadata"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<PersistentVolume>() {
  static const std::vector<std::string_view> keys = {"managedFields", "annotations", "csi"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<PersistentVolumeClaim>() {
  static const std::vector<std::string_view> keys = {"managedFields"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<Namespace>() {
  return dropped_keys<PersistentVolumeClaim>();
}

}  // namespace haulout::k8s::codec
