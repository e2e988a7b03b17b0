// For the codec files only: from a JSON object to each of our types. What is of the wrong shape goes to the Problem of
// the Object; nothing else can fail. Pure.
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
// The API server lets no other in.
bool is_complete(const OwnerReference& owner);
// Of the conditions of a status, the last one of this type.
bool condition_true(const Object& status, std::string_view type);
// As far as the type keeps it.
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

// Keys of structures that `read` has no use for and that are most of such an object's bytes.
template <class T>
const std::vector<std::string_view>& dropped_keys();
// Keys of all structures of any object that do not tell which one it is.
const std::vector<std::string_view>& keys_beside_identity();

}  // namespace haulout::k8s::codec
