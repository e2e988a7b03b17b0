// JSON to objects and back. The only place of this folder (with status.cpp and kubeconfig.cpp) that knows a JSON
// library.
//
// Every decoder checks what it was given: a body that is not JSON, cut short, of another kind, or without name and UID
// is Errc::decode with a sentence that says so, never an empty object. Unknown fields are ignored. Pure.
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
// A Deployment, a ReplicaSet, a StatefulSet or a Scale: whichever `kind` says.
Result<Workload> decode_workload(std::string_view json, std::string_view kind);
// Of an APIResourceList: by kind, the plural of the resources that have a scale subresource.
Result<std::map<std::string, std::string>> decode_scalable(std::string_view json);
// Of a Node.
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

// The answer to a write whose result is not needed: a Status that says Success (evictions, most deletions), or the
// object itself.
Result<> decode_write_answer(std::string_view json, std::string_view kind = "Pod");

// One line of a watch stream. `error` carries the Status as an Error; a bookmark carries only resource_version.
template <class T>
struct WatchEvent {
  WatchEventType type = WatchEventType::bookmark;
  T object;                      // added, modified; deleted: nothing is sure to be read but what identifies it
  std::string resource_version;  // every type but error
  Error error;                   // error
};
template <class T>
Result<WatchEvent<T>> decode_watch_event(
    std::string_view line);  // for Pod, Node, PodDisruptionBudget, VolumeAttachment, Lease, ConfigMap

// RFC 3339, with or without fraction; clamped to 1900 … 2190, so that a Duration can hold what lies between any two.
// format_time writes whole seconds, format_micro_time six digits.
Result<WallTime> parse_time(std::string_view text);
std::string format_time(WallTime time);
std::string format_micro_time(WallTime time);

}  // namespace haulout::k8s
