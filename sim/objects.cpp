#include "sim/objects.hpp"

#include "base/duration.hpp"
#include "k8s/codec.hpp"

namespace haulout::sim {

std::size_t HashOfKey::operator()(const Key& key) const {
  constexpr std::size_t factor = 31;
  const std::hash<std::string> hash;
  return (hash(key.name) * factor + hash(key.ns)) * factor + hash(key.resource);
}

std::string ResourceInfo::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

std::string ResourceInfo::qualified() const {
  return group.empty() ? std::string(resource) : std::string(resource) + "." + std::string(group);
}

const std::vector<ResourceInfo>& all_resources() {
  static const std::vector<ResourceInfo> table = {
      {"configmaps", "ConfigMap", "", "v1", true},
      {"csidrivers", "CSIDriver", "storage.k8s.io", "v1", false},
      {"csinodes", "CSINode", "storage.k8s.io", "v1", false},
      {"daemonsets", "DaemonSet", "apps", "v1", true},
      {"deployments", "Deployment", "apps", "v1", true},
      {"events", "Event", "events.k8s.io", "v1", true},
      {"evictionrequests", "EvictionRequest", "lifecycle.k8s.io", "v1alpha1", true},
      {"evictions", "Eviction", "lifecycle.k8s.io", "v1alpha1", true},
      {"horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling", "v2", true},
      {"jobs", "Job", "batch", "v1", true},
      {"leases", "Lease", "coordination.k8s.io", "v1", true},
      {"mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "admissionregistration.k8s.io", "v1", false},
      {"namespaces", "Namespace", "", "v1", false},
      {"nodes", "Node", "", "v1", false},
      {"persistentvolumeclaims", "PersistentVolumeClaim", "", "v1", true},
      {"persistentvolumes", "PersistentVolume", "", "v1", false},
      {"poddisruptionbudgets", "PodDisruptionBudget", "policy", "v1", true},
      {"pods", "Pod", "", "v1", true},
      {"replicasets", "ReplicaSet", "apps", "v1", true},
      {"replicationcontrollers", "ReplicationController", "", "v1", true},
      {"resourcequotas", "ResourceQuota", "", "v1", true},
      {"services", "Service", "", "v1", true},
      {"statefulsets", "StatefulSet", "apps", "v1", true},
      {"storageclasses", "StorageClass", "storage.k8s.io", "v1", false},
      {"validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "admissionregistration.k8s.io", "v1",
       false},
      {"volumeattachments", "VolumeAttachment", "storage.k8s.io", "v1", false},
  };
  return table;
}

namespace {
template <class Predicate>
const ResourceInfo* find_where(Predicate predicate) {
  for (const ResourceInfo& info : all_resources())
    if (predicate(info)) return &info;
  return nullptr;
}
}  // namespace

bool scalable(const ResourceInfo& info) {
  return info.resource == "deployments" || info.resource == "replicasets" || info.resource == "statefulsets" ||
         info.resource == "replicationcontrollers";
}

const ResourceInfo* find_resource(std::string_view group, std::string_view resource) {
  return find_where([&](const ResourceInfo& info) { return info.group == group && info.resource == resource; });
}
const ResourceInfo* find_resource(std::string_view resource) {
  return find_where([&](const ResourceInfo& info) { return info.resource == resource; });
}
const ResourceInfo* find_kind(std::string_view kind) {
  return find_where([&](const ResourceInfo& info) { return info.kind == kind; });
}

Json object_of(std::initializer_list<std::pair<std::string_view, Json>> members) {
  Json object = Json::object();
  auto& map = object.get_ref<Json::object_t&>();
  for (const auto& [name, value] : members) map.emplace(name, value);
  return object;
}

namespace {

void take_apart(Json& value) {
  if (!value.is_structured()) return;
  for (Json& below : value) take_apart(below);
  value.clear();
}

class TakenApart {
 public:
  explicit TakenApart(Json json) : json_(std::move(json)) {}
  TakenApart(const TakenApart&) = delete;
  TakenApart& operator=(const TakenApart&) = delete;
  ~TakenApart() { take_apart(json_); }
  const Json& json() const { return json_; }

 private:
  Json json_;
};

}  // namespace

Object object_from(Json json) {
  const auto owner = std::make_shared<const TakenApart>(std::move(json));
  return {owner, &owner->json()};
}

std::string annotation(const Json& object, const char* key) {
  const Json& annotations = at(object, "/metadata/annotations");
  if (!annotations.is_object()) return {};
  const auto found = annotations.find(key);
  return found != annotations.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool has_finalizers(const Json& object) {
  return !at(object, "/metadata/finalizers").empty();
}

bool is_mirror(const Json& pod) {
  return !annotation(pod, "kubernetes.io/config.mirror").empty();
}

bool may_stay(const Json& pod) {
  return text(controller_of(pod), "/kind") == "DaemonSet" || is_mirror(pod) || (pod_finished(pod) && !terminating(pod));
}

bool pod_ready(const Json& pod) {
  return is_text(condition(pod, "Ready"), "/status", "True");
}

std::vector<std::string> claims_of(const Json& pod) {
  std::vector<std::string> claims;
  for (const Json& volume : at(pod, "/spec/volumes")) {
    std::string claim = text(volume, "/persistentVolumeClaim/claimName");
    if (claim.empty() && volume.contains("ephemeral")) claim = name_of(pod) + "-" + text(volume, "/name");
    if (!claim.empty()) claims.push_back(std::move(claim));
  }
  return claims;
}

void set_condition(Json& object, Json value, WallTime now) {
  Json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  const auto same = [&value](const Json& entry, const char* member) { return at(entry, member) == at(value, member); };
  for (Json& entry : conditions) {
    if (!same(entry, "/type")) continue;
    const bool unchanged = same(entry, "/status");
    const Json& since = at(entry, "/lastTransitionTime");
    value["lastTransitionTime"] = unchanged && since.is_string() ? since : Json(k8s::format_time(now));
    entry = std::move(value);
    return;
  }
  value["lastTransitionTime"] = k8s::format_time(now);
  conditions.push_back(std::move(value));
}

Duration annotated(const Json& object, const char* key, Duration otherwise) {
  const auto duration = parse_duration(annotation(object, key));
  return duration && *duration >= Duration::zero() ? *duration : otherwise;
}

}  // namespace haulout::sim
