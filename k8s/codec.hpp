// Converts JSON to objects and back. In this folder only the codec files, status.cpp and kubeconfig.cpp use a JSON
// library.
//
// Every decoder checks its input. It returns Errc::decode with an explanation, never an empty object, if the body is
// not JSON, is cut short, has another kind, or lacks a name or UID. A body with too many values is Errc::protocol
// (codec_json.hpp). Unknown fields are ignored. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

Result<Pod> decode_pod(std::string_view json);
Result<Node> decode_node(std::string_view json);
Result<PodDisruptionBudget> decode_pdb(std::string_view json);
Result<DaemonSet> decode_daemon_set(std::string_view json);
// Decodes a Deployment, a ReplicaSet, a StatefulSet or a Scale. `kind` selects which.
Result<Workload> decode_workload(std::string_view json, std::string_view kind);
// Decodes an APIResourceList. Returns the resources that have a scale subresource: kind → plural name.
Result<std::map<std::string, std::string>> decode_scalable(std::string_view json);
// Decodes the volumes in the status of a Node.
Result<NodeVolumes> decode_node_volumes(std::string_view json);
Result<VolumeAttachment> decode_volume_attachment(std::string_view json);
Result<PersistentVolume> decode_persistent_volume(std::string_view json);
Result<PersistentVolumeClaim> decode_persistent_volume_claim(std::string_view json);
Result<Namespace> decode_namespace(std::string_view json);
Result<Service> decode_service(std::string_view json);
Result<Lease> decode_lease(std::string_view json);
Result<ConfigMap> decode_config_map(std::string_view json);
Result<List<Pod>> decode_pod_list(std::string_view json);
Result<List<Node>> decode_node_list(std::string_view json);
Result<List<PodDisruptionBudget>> decode_pdb_list(std::string_view json);
Result<List<VolumeAttachment>> decode_volume_attachment_list(std::string_view json);
Result<List<Lease>> decode_lease_list(std::string_view json);
Result<List<ConfigMap>> decode_config_map_list(std::string_view json);

struct AccessReview {
  bool allowed = false;
  std::string reason;
};
Result<AccessReview> decode_access_review(std::string_view json);
Result<Self> decode_self_review(std::string_view json);

// Checks the answer to a write whose result is not needed. Accepts a Status that says Success (evictions, most
// deletions) or an object of the given kind.
Result<> decode_write_answer(std::string_view json, std::string_view kind = "Pod");

// One line of a watch stream. A bookmark has only `resource_version`.
template <class T>
struct WatchEvent {
  WatchEventType type = WatchEventType::bookmark;
  T object;                      // for added and modified; for deleted only its identity is certain
  std::string resource_version;  // for every type except error
  Error error;                   // for type error: the Status that the server sent
};
template <class T>
Result<WatchEvent<T>> decode_watch_event(
    std::string_view line);  // instantiated for Pod, Node, PodDisruptionBudget, VolumeAttachment, Lease and ConfigMap

// RFC 3339, with or without fraction. Times are clamped to 1900 … 2190, so that a Duration can hold the difference of
// any two. format_time writes whole seconds, format_micro_time six digits after the point.
Result<WallTime> parse_time(std::string_view text);
std::string format_time(WallTime time);
std::string format_micro_time(WallTime time);

}  // namespace haulout::k8s
