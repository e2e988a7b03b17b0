// Nodes, and the volumes in their status: the structs, their place in the API and their decoders. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "http/hmac.hpp"
#include "k8s/kind.hpp"

namespace haulout::k8s {

struct Taint {
  std::string key;
  std::string effect;
  std::optional<WallTime> time_added;
  std::string value{};
  bool operator==(const Taint&) const = default;
};

struct NodeCondition {
  std::string type;
  std::string status;  // "True", "False" or "Unknown"; empty if it is none of them
  // The next three fields are kept only of the conditions that Haulout may set. The kubelet renews the heartbeats of
  // the others all the time, and nothing uses them.
  std::string reason{};
  std::optional<WallTime> last_heartbeat{};
  std::string message{};  // its beginning
  bool operator==(const NodeCondition&) const = default;
};

// The conditions by which the author of a maintenance tells of it (k/k staging/src/k8s.io/api/core/v1/types.go,
// KEP-5683). Not only Haulout may write them.
inline constexpr std::array<std::string_view, 4> lifecycle_conditions{"MaintenancePlanned", "DrainInProgress",
                                                                      "Drained", "MaintenanceInProgress"};
// Returns true for the conditions of a Node that Haulout may set.
inline bool own_condition(std::string_view type) {
  return type.starts_with("Haulout") ||
         std::find(lifecycle_conditions.begin(), lifecycle_conditions.end(), type) != lifecycle_conditions.end();
}

struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;  // of all programs, up to the limits in codec::node
  bool unschedulable = false;
  std::vector<Taint> taints;
  bool ready = false;
  std::vector<NodeCondition> conditions;  // of all programs, up to the limits in codec::node
  // The next three fields are from status.nodeInfo.
  std::string boot_id;
  std::string os_image;
  std::string kernel_version;
  // From metadata.managedFields: the manager that owns spec.unschedulable. If there are several owners, it is Haulout
  // (`field_manager`) if Haulout is one of them, otherwise the one that set the field last. Empty if the field is not
  // set or the server does not know the manager.
  std::string unschedulable_manager;
  bool operator==(const Node&) const = default;
};

// Limits for the labels that are kept of a Node: their number and their bytes. Labels with Haulout's prefix have
// separate limits of the same size.
inline constexpr std::size_t most_labels = 1000;
inline constexpr std::size_t longest_labels = kilobytes(64);
// Limit for the number of annotations that are kept of a Node. The API limits only their bytes, to 256 KiB in all.
inline constexpr std::size_t most_annotations = 1000;
// Limit for the type of a condition, in bytes: the longest that the API's documentation allows. A condition with a
// longer type is not kept.
inline constexpr std::size_t longest_condition_type = 316;
// Returns true if some labels of the Node may not have been kept.
inline bool labels_may_be_cut(const Node& node) {
  // The longest label that the API accepts: prefix, slash, name and value.
  constexpr std::size_t longest_label = 253 + 1 + 63 + 63;
  return node.labels.size() >= most_labels || text_of(node.labels) + longest_label > longest_labels;
}

namespace codec::node {

// Limits for the labels that are kept. An object of 1.5 MB can have 100,000 labels, and there may be many such objects.
// Labels with Haulout's prefix have separate limits, so that no other labels displace them.
inline constexpr std::string_view ours = "haulout.dev/";
inline constexpr Room labels{most_labels, longest_labels, ours};
inline constexpr Room annotations{most_annotations, 256 * 1024, ours};
// Limits for the conditions that are kept, of other programs and of Haulout. The kubelet sets four, and
// node-problem-detector some ten. Haulout sets four, which have a limit of their own so that no others displace them.
inline constexpr std::size_t most_conditions = 100;
inline constexpr std::size_t most_own_conditions = 10;
// Limit for the reason of a condition that Haulout may set, in bytes, as the API's documentation has it, and for its
// message. The rest is cut.
inline constexpr std::size_t longest_condition_reason = 1024;
inline constexpr std::size_t longest_condition_message = 1024;

// Returns the status of a condition, or an empty text if it is none that the API knows. So it is short.
inline std::string read_status(const Object& condition) {
  auto status = condition.string("status");
  return status == "True" || status == "False" || status == "Unknown" ? status : std::string();
}

// Returns whether the name stands for no manager: the server uses it for fields whose manager it does not know, or does
// not know any more (apimachinery, util/managedfields/internal: capmanagers.go, skipnonapplied.go).
inline bool is_nobody(std::string_view manager) {
  return manager == "ancient-changes" || manager == "before-first-apply";
}

// Returns the manager that owns spec.unschedulable: Haulout if it is one of the owners, otherwise the newest. A field
// has several owners if a manager applies the value that is already set.
inline std::string read_unschedulable_manager(const Object& metadata) {
  std::string manager;
  std::optional<WallTime> newest;
  metadata.each("managedFields", [&](const Object& entry) {
    if (!entry.object("fieldsV1").object("f:spec").has("f:unschedulable")) return;
    auto name = entry.string("manager");
    if (is_nobody(name) || manager == field_manager) return;
    const auto time = entry.time("time");
    const bool older = !manager.empty() && newest && (!time || *time < *newest);
    if (older && name != field_manager) return;
    manager = std::move(name);
    newest = time;
  });
  return manager;
}

}  // namespace codec::node

template <>
struct Kind<Node> {
  static constexpr std::string_view name = "Node";
  static constexpr Api api{"v1", "nodes", Scope::cluster, Names::ours, "Node", "Nodes"};
  static constexpr ListBudget budget{20'000, 0, megabytes(16), kilobytes(8)};
  // managedFields are not dropped: they say which manager set spec.unschedulable.
  static constexpr std::array<std::string_view, 3> dropped = {"images", "volumesInUse", "volumesAttached"};

  static void read(const codec::Object& json, Node& node) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, node);
    node.labels = metadata.strings("labels", codec::node::labels);
    node.annotations = metadata.strings("annotations", codec::node::annotations);
    node.unschedulable_manager = codec::node::read_unschedulable_manager(metadata);
    const auto spec = json.object("spec");
    node.unschedulable = spec.boolean("unschedulable");
    spec.each("taints", [&](const codec::Object& taint) {
      node.taints.push_back(
          {taint.string("key"), taint.string("effect"), taint.time("timeAdded"), taint.string("value")});
    });
    const auto status = json.object("status");
    node.ready = codec::condition_true(status, "Ready");
    std::size_t ours = 0, others = 0;
    status.each("conditions", [&](const codec::Object& condition) {
      auto type = condition.string("type");
      if (type.size() > longest_condition_type) return;
      const bool own = own_condition(type);
      if (own ? ours++ >= codec::node::most_own_conditions : others++ >= codec::node::most_conditions) return;
      NodeCondition& kept = node.conditions.emplace_back();
      kept.type = std::move(type);
      kept.status = codec::node::read_status(condition);
      if (!own) return;
      kept.reason = condition.string("reason").substr(0, codec::node::longest_condition_reason);
      kept.last_heartbeat = condition.time("lastHeartbeatTime");
      kept.message = condition.string("message").substr(0, codec::node::longest_condition_message);
    });
    const auto info = status.object("nodeInfo");
    node.boot_id = info.string("bootID");
    node.os_image = info.string("osImage");
    node.kernel_version = info.string("kernelVersion");
  }
  static std::size_t text_in(const Node& node) {
    std::size_t bytes = text_of(node.labels) + text_of(node.annotations);
    for (const NodeCondition& condition : node.conditions)
      bytes += sizeof(condition) + condition.type.size() + condition.status.size() + condition.reason.size() +
               condition.message.size();
    for (const Taint& taint : node.taints)
      bytes += sizeof(taint) + taint.key.size() + taint.effect.size() + taint.value.size();
    return bytes;
  }
};

// The volumes in the status of a Node that are in use or attached there: the kubelet uses them (volumesInUse), or the
// attach-detach controller of kube-controller-manager has attached them and has to detach them (volumesAttached).
struct NodeVolumes {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> held;  // unique names: "kubernetes.io/csi/DRIVER^HANDLE"; one name may occur twice
};

// Returns the name that kube-controller-manager gives to the VolumeAttachment of this volume on this node. Returns an
// empty string if it is not a CSI volume: other volumes have no VolumeAttachment. (k/k pkg/volume/csi/csi_attacher.go,
// getAttachmentName)
inline std::string attachment_name(std::string_view unique_name, std::string_view node) {
  constexpr std::string_view prefix = "kubernetes.io/csi/";
  const auto separator = unique_name.find('^');
  if (!unique_name.starts_with(prefix) || separator == unique_name.npos) return {};
  const auto driver = unique_name.substr(prefix.size(), separator - prefix.size());
  std::string name = "csi-";
  for (const auto byte : http::sha256(fmt::format("{}{}{}", unique_name.substr(separator + 1), driver, node)))
    name += fmt::format("{:02x}", byte);
  return name;
}

template <>
struct Kind<NodeVolumes> {
  static constexpr std::string_view name = "Node";
  static constexpr Api api{"v1", "nodes", Scope::cluster, Names::ours, "Node", "Nodes"};
  static constexpr std::array<std::string_view, 4> dropped = {"managedFields", "annotations", "images", "conditions"};

  static void read(const codec::Object& json, NodeVolumes& volumes) {
    codec::read_identity(json.object("metadata"), volumes);
    const auto status = json.object("status");
    volumes.held = status.string_list("volumesInUse");
    status.each("volumesAttached", [&](const codec::Object& volume) { volumes.held.push_back(volume.string("name")); });
  }
};

}  // namespace haulout::k8s
