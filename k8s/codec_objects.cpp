#include "k8s/codec_objects.hpp"

#include <algorithm>

#include "k8s/codec.hpp"
#include "k8s/list_budget.hpp"

namespace haulout::k8s::codec {
namespace {

// An object of 1.5 MB can have 100,000 labels, and there may be many such objects. Other keys never displace the keys
// of Haulout: those have limits of their own.
constexpr std::string_view ours = "haulout.dev/";
constexpr Room labels_of_node{most_labels, longest_labels, ours};
// The API accepts at most 256 KiB of annotations.
constexpr Room annotations_of_node{1000, 256 * 1024, ours};
constexpr Room labels_of_lease{16, 4 * 1024, ours};
// A budget with a longer selector is read as one without a selector. Then only the API server knows which pods the
// budget selects.
constexpr std::size_t longest_selector = 16 * 1024;

std::size_t text_of(const std::vector<LabelSelector::Requirement>& requirements) {
  std::size_t bytes = 0;
  for (const auto& requirement : requirements) {
    bytes += requirement.key.size();
    for (const std::string& value : requirement.values) bytes += value.size();
  }
  return bytes;
}

LabelSelector::Operator operator_of(const std::string& text, bool& known) {
  using Operator = LabelSelector::Operator;
  if (text == "In") return Operator::in;
  if (text == "NotIn") return Operator::not_in;
  if (text == "Exists") return Operator::exists;
  known = known && text == "DoesNotExist";
  return Operator::does_not_exist;
}

// Reads a selector. A selector with an unknown operator selects nothing: the eviction API skips such a budget, too.
std::optional<LabelSelector> read_selector(const Object& spec) {
  if (!spec.has("selector")) return std::nullopt;
  const auto selector = spec.object("selector");
  std::vector<LabelSelector::Requirement> requirements;
  bool known = true;
  for (auto& [key, value] : selector.strings("matchLabels")) {
    requirements.push_back({key, LabelSelector::Operator::in, {value}});
  }
  selector.each("matchExpressions", [&](const Object& expression) {
    const auto op = operator_of(expression.string("operator"), known);
    requirements.push_back({expression.string("key"), op, expression.string_list("values")});
  });
  if (!known || text_of(requirements) > longest_selector) return std::nullopt;
  return LabelSelector(std::move(requirements));
}

// The server uses these names for fields whose manager it does not know, or does not know any more (apimachinery,
// util/managedfields/internal: capmanagers.go, skipnonapplied.go).
bool is_nobody(std::string_view manager) {
  return manager == "ancient-changes" || manager == "before-first-apply";
}

// Returns the manager that owns spec.unschedulable: Haulout if it is one of them, otherwise the newest. Others own the
// field besides Haulout if they apply the value that is already set.
std::string read_unschedulable_manager(const Object& metadata) {
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

}  // namespace

bool condition_true(const Object& status, std::string_view type) {
  bool found = false;
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") == type) found = condition.string("status") == "True";
  });
  return found;
}

OwnerReference read_owner(const Object& owner) {
  return {owner.string("apiVersion"), owner.string("kind"), owner.string("name"), owner.string("uid"),
          owner.boolean("controller")};
}

bool is_complete(const OwnerReference& owner) {
  return !owner.api_version.empty() && !owner.kind.empty() && !owner.name.empty() && !owner.uid.empty();
}

void read(const Object& json, Node& node) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, node);
  node.labels = metadata.strings("labels", labels_of_node);
  node.annotations = metadata.strings("annotations", annotations_of_node);
  node.unschedulable_manager = read_unschedulable_manager(metadata);
  const auto spec = json.object("spec");
  node.unschedulable = spec.boolean("unschedulable");
  spec.each("taints", [&](const Object& taint) {
    node.taints.push_back({taint.string("key"), taint.string("effect"), taint.time("timeAdded")});
  });
  const auto status = json.object("status");
  node.ready = condition_true(status, "Ready");
  status.each("conditions", [&](const Object& condition) {
    auto type = condition.string("type");
    if (!kept_condition(type)) return;
    node.conditions.push_back(
        {std::move(type), condition.string("status"), condition.string("reason"), condition.time("lastHeartbeatTime")});
  });
  const auto info = status.object("nodeInfo");
  node.boot_id = info.string("bootID");
  node.os_image = info.string("osImage");
  node.kernel_version = info.string("kernelVersion");
}

void read(const Object& json, PodDisruptionBudget& pdb) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, pdb);
  pdb.generation = metadata.integer("generation").value_or(0);
  pdb.managed_by = metadata.object("labels").string("app.kubernetes.io/managed-by");
  if (const auto release = metadata.object("annotations").string("meta.helm.sh/release-name"); !release.empty())
    pdb.managed_by = "Helm, release " + release;
  const auto spec = json.object("spec");
  pdb.selector = read_selector(spec);
  pdb.min_available = spec.int_or_string("minAvailable");
  pdb.max_unavailable = spec.int_or_string("maxUnavailable");
  pdb.always_allow_unhealthy = spec.string("unhealthyPodEvictionPolicy") == "AlwaysAllow";
  const auto status = json.object("status");
  pdb.observed_generation = status.integer("observedGeneration").value_or(0);
  pdb.disruptions_allowed = status.integer32("disruptionsAllowed");
  pdb.current_healthy = status.integer32("currentHealthy");
  pdb.desired_healthy = status.integer32("desiredHealthy");
  pdb.expected_pods = status.integer32("expectedPods");
  status.members("disruptedPods", [&](std::string_view name, const Json& since) {
    const auto* text = since.if_string();
    const auto when = text ? parse_time({text->data(), text->size()}) : Result<WallTime>(WallTime{});
    pdb.disrupted_pods.emplace(name, text && when ? std::optional(*when) : std::nullopt);
  });
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") != "DisruptionAllowed") return;
    pdb.condition_reason = condition.string("reason");
    pdb.condition_message = condition.string("message");
  });
}

void read(const Object& json, DaemonSet& daemon_set) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, daemon_set);
}

// An empty selector is read as no selector.
void read(const Object& json, Service& service) {
  read_identity(json.object("metadata"), service);
  std::vector<LabelSelector::Requirement> requirements;
  for (auto& [key, value] : json.object("spec").strings("selector"))
    requirements.push_back({key, LabelSelector::Operator::in, {value}});
  if (!requirements.empty()) service.selector = LabelSelector(std::move(requirements));
}

void read(const Object& json, Lease& lease) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, lease);
  lease.labels = metadata.strings("labels", labels_of_lease);
  metadata.each("ownerReferences", [&](const Object& owner) {
    if (lease.owners++ == 0) lease.owner = read_owner(owner);
  });
  const auto spec = json.object("spec");
  lease.holder = spec.string("holderIdentity");
  lease.acquire_time = spec.time("acquireTime");
  lease.renew_time = spec.time("renewTime");
}

void read(const Object& json, ConfigMap& config_map) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, config_map);
  config_map.data = json.strings("data");
}

const std::vector<std::string_view>& keys_beside_identity() {
  static const std::vector<std::string_view> keys = {"managedFields",   "labels",     "annotations",
                                                     "ownerReferences", "finalizers", "spec",
                                                     "status",          "data",       "binaryData"};
  return keys;
}

// managedFields are not dropped: they say which manager set spec.unschedulable.
template <>
const std::vector<std::string_view>& dropped_keys<Node>() {
  static const std::vector<std::string_view> keys = {"images", "volumesInUse", "volumesAttached"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<PodDisruptionBudget>() {
  static const std::vector<std::string_view> keys = {"managedFields"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<DaemonSet>() {
  static const std::vector<std::string_view> keys = {"managedFields", "template"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<Service>() {
  return dropped_keys<PodDisruptionBudget>();
}

template <>
const std::vector<std::string_view>& dropped_keys<Lease>() {
  static const std::vector<std::string_view> keys = {"managedFields", "annotations"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<ConfigMap>() {
  static const std::vector<std::string_view> keys = {"managedFields", "binaryData"};
  return keys;
}

}  // namespace haulout::k8s::codec
