#include "placement/cluster_pages.hpp"

#include <array>
#include <boost/json.hpp>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "k8s/codec_json.hpp"

namespace haulout::placement {
namespace {

using Value = k8s::codec::Json;

// Keys of objects and arrays that are not kept, and that are most of a list. They are not even built. A label of such a
// name is kept, because its value is a text.
constexpr std::array<std::string_view, 8> beside_nodes = {"managedFields", "annotations", "images",   "volumesAttached",
                                                          "volumesInUse",  "addresses",   "nodeInfo", "podCIDRs"};
constexpr std::array<std::string_view, 23> beside_pods = {"managedFields",
                                                          "annotations",
                                                          "containerStatuses",
                                                          "initContainerStatuses",
                                                          "ephemeralContainerStatuses",
                                                          "ephemeralContainers",
                                                          "conditions",
                                                          "podIPs",
                                                          "hostIPs",
                                                          "volumeMounts",
                                                          "volumeDevices",
                                                          "env",
                                                          "envFrom",
                                                          "args",
                                                          "command",
                                                          "lifecycle",
                                                          "livenessProbe",
                                                          "readinessProbe",
                                                          "startupProbe",
                                                          "securityContext",
                                                          "imagePullSecrets",
                                                          "readinessGates",
                                                          "hostAliases"};

Json copied(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return nullptr;
    case boost::json::kind::bool_: return value.get_bool();
    case boost::json::kind::int64: return value.get_int64();
    case boost::json::kind::uint64: return value.get_uint64();
    case boost::json::kind::double_: return value.get_double();
    case boost::json::kind::string: return std::string(std::string_view(value.get_string()));
    case boost::json::kind::array: break;
    case boost::json::kind::object: {
      Json::object_t members;
      for (const auto& member : value.get_object()) members.emplace(member.key(), copied(member.value()));
      return members;
    }
  }
  Json::array_t items;
  items.reserve(value.get_array().size());
  for (const Value& item : value.get_array()) items.push_back(copied(item));
  return items;
}

// Returns nullptr if `from` is no object or has no such member.
const Value* member(const Value* from, std::string_view key) {
  const auto* members = from == nullptr ? nullptr : from->if_object();
  return members == nullptr ? nullptr : members->if_contains(key);
}

// Returns the members with these keys, as far as there are any.
Json part(const Value* from, std::initializer_list<std::string_view> keys) {
  Json kept = Json::object();
  for (const std::string_view key : keys)
    if (const Value* value = member(from, key)) kept[std::string(key)] = copied(*value);
  return kept;
}

Object node_of(const Value& node) {
  Json kept = Json::object();
  kept["metadata"] = part(member(&node, "metadata"), {"name", "labels", "deletionTimestamp"});
  kept["spec"] = part(member(&node, "spec"), {"unschedulable", "taints"});
  kept["status"] = part(member(&node, "status"), {"allocatable", "capacity", "conditions"});
  return std::make_shared<const Json>(std::move(kept));
}

Json containers_of(const Value& containers) {
  Json kept = Json::array();
  if (const auto* list = containers.if_array())
    for (const Value& container : *list) kept.push_back(part(&container, {"ports", "resources", "restartPolicy"}));
  return kept;
}

Object pod_of(const Value& pod) {
  Json kept = Json::object();
  kept["metadata"] =
      part(member(&pod, "metadata"), {"name", "namespace", "uid", "labels", "deletionTimestamp", "ownerReferences"});
  const Value* const spec = member(&pod, "spec");
  kept["spec"] = part(
      spec, {"nodeName", "schedulerName", "priority", "preemptionPolicy", "overhead", "affinity", "nodeSelector",
             "tolerations", "topologySpreadConstraints", "volumes", "schedulingGates", "resourceClaims", "resources"});
  for (const char* kind : {"containers", "initContainers"})
    if (const Value* containers = member(spec, kind)) kept["spec"][kind] = containers_of(*containers);
  kept["status"] = part(member(&pod, "status"), {"phase", "extendedResourceClaimStatus"});
  return std::make_shared<const Json>(std::move(kept));
}

Result<std::string> read_page(std::string_view page, std::string_view kind, std::span<const std::string_view> dropped,
                              Object (*object_of)(const Value&), std::vector<Object>& into) {
  auto list = k8s::codec::parse(page, dropped);
  if (!list) return std::move(list).error();
  auto head = k8s::codec::read_list(**list, kind, [&](const Value& item) {
    into.push_back(object_of(item));
    return Result<>();
  });
  if (!head) return std::move(head).error();
  return std::move(head->continue_token);
}

template <class T>
Task<std::vector<Object>> list(k8s::Client& client, std::string field_selector,
                               Result<std::string> (*read)(std::string_view, std::vector<Object>&),
                               std::uint32_t page_size, TimePoint deadline) {
  std::vector<Object> all;
  k8s::Client::Pages pages;
  pages.begin = [&] { all.clear(); };
  pages.take = [&](const std::string& page) { return read(page, all); };
  k8s::ListOptions options;
  options.field_selector = std::move(field_selector);
  options.limit = page_size;
  CO_CHECK(
      co_await client.list_pages(k8s::Kind<T>::api, std::move(options), deadline, k8s::longest_page, std::move(pages)));
  co_return all;
}

}  // namespace

Result<std::string> read_nodes(std::string_view page, std::vector<Object>& into) {
  return read_page(page, "NodeList", beside_nodes, node_of, into);
}

Result<std::string> read_pods(std::string_view page, std::vector<Object>& into) {
  return read_page(page, "PodList", beside_pods, pod_of, into);
}

Task<ClusterView> read_cluster(k8s::Client& client, std::uint32_t page_size, TimePoint deadline) {
  auto nodes = co_await list<k8s::Node>(client, {}, read_nodes, page_size, deadline);
  if (!nodes) co_return std::move(nodes).error().with_context("the nodes of the cluster could not be listed");
  auto pods =
      co_await list<k8s::Pod>(client, "status.phase!=Succeeded,status.phase!=Failed", read_pods, page_size, deadline);
  if (!pods) co_return std::move(pods).error().with_context("the pods of the cluster could not be listed");
  co_return ClusterView{*std::move(nodes), *std::move(pods)};
}

}  // namespace haulout::placement
