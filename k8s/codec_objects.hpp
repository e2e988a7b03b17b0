// For the codec files only: reads a JSON object into each of the types of objects.hpp. Wrong types of fields are noted
// in the Problem of the Object; there are no other failures. Pure.
#pragma once

#include "k8s/codec_json.hpp"
#include "k8s/objects.hpp"

namespace haulout::k8s::codec {

void read(const Object& json, Pod& pod);
void read(const Object& json, Node& node);
void read(const Object& json, PodDisruptionBudget& pdb);
void read(const Object& json, DaemonSet& daemon_set);
void read(const Object& json, NodeVolumes& volumes);
void read(const Object& json, VolumeAttachment& attachment);
void read(const Object& json, PersistentVolume& volume);
void read(const Object& json, PersistentVolumeClaim& claim);
void read(const Object& json, Namespace& ns);
void read(const Object& json, Service& service);
void read(const Object& json, Lease& lease);
void read(const Object& json, ConfigMap& config_map);

OwnerReference read_owner(const Object& owner);
// True if all fields that the API server requires of an ownerReference are set.
bool is_complete(const OwnerReference& owner);
// True if the status has a condition of this type whose status is "True". If there are several of this type, the last
// one counts.
bool condition_true(const Object& status, std::string_view type);
// Reads the fields of the identity that T has.
template <class T>
void read_identity(const Object& metadata, T& object) {
  if constexpr (requires { object.ns; }) object.ns = metadata.string("namespace");
  object.name = metadata.string("name");
  object.uid = metadata.string("uid");
  if constexpr (requires { object.resource_version; }) object.resource_version = metadata.string("resourceVersion");
}

template <class T>
inline constexpr std::string_view kind_of = "";
template <>
inline constexpr std::string_view kind_of<Pod> = "Pod";
template <>
inline constexpr std::string_view kind_of<Node> = "Node";
template <>
inline constexpr std::string_view kind_of<PodDisruptionBudget> = "PodDisruptionBudget";
template <>
inline constexpr std::string_view kind_of<DaemonSet> = "DaemonSet";
template <>
inline constexpr std::string_view kind_of<NodeVolumes> = "Node";
template <>
inline constexpr std::string_view kind_of<VolumeAttachment> = "VolumeAttachment";
template <>
inline constexpr std::string_view kind_of<PersistentVolume> = "PersistentVolume";
template <>
inline constexpr std::string_view kind_of<PersistentVolumeClaim> = "PersistentVolumeClaim";
template <>
inline constexpr std::string_view kind_of<Namespace> = "Namespace";
template <>
inline constexpr std::string_view kind_of<Service> = "Service";
template <>
inline constexpr std::string_view kind_of<Lease> = "Lease";
template <>
inline constexpr std::string_view kind_of<ConfigMap> = "ConfigMap";

// Keys of objects and arrays that `read` does not use and that are most of the bytes of a T.
template <class T>
const std::vector<std::string_view>& dropped_keys();
// Keys of all objects and arrays that are not part of the identity of an object, for any type.
const std::vector<std::string_view>& keys_beside_identity();

}  // namespace haulout::k8s::codec
