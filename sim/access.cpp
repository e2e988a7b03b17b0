#include "sim/access.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/codec.hpp"
#include "sim/status_bodies.hpp"

namespace haulout::sim {
namespace {

constexpr std::string_view node_user = "system:node:";
constexpr const char* node_lease_namespace = "kube-node-lease";

// Rules of ClusterRole system:node (NodeRules in kube-apiserver), for most resources that the simulation serves.
// refused_to_node() decides about Leases, and about resources that are reached by name only.
constexpr std::string_view granted[] = {
    "get pods",      "list pods",         "watch pods",         "create pods",
    "delete pods",   "patch pods/status", "update pods/status", "create pods/eviction",
    "get nodes",     "list nodes",        "watch nodes",        "create nodes",
    "update nodes",  "patch nodes",       "patch nodes/status", "update nodes/status",
    "list services", "watch services",    "get services",       "create events",
    "update events", "patch events",      "list csidrivers",    "watch csidrivers",
    "get csidrivers"};

std::string what_of(const Call& call) {
  return call.verb + " " + std::string(call.info->resource) + (call.subresource.empty() ? "" : "/" + call.subresource);
}

http::Response denied(const Call& call, const std::string& node, const std::string& why = {}) {
  StatusBody body =
      forbidden_by_rbac(std::string(node_user) + node, call.verb, *call.info, call.subresource, call.ns, call.name);
  if (!why.empty()) body.message += ": " + why;
  return body.response();
}

http::Response inadmissible(const Call& call, const std::string& why) {
  StatusBody body;
  body.code = 403;
  body.reason = "Forbidden";
  body.name = call.name;
  body.kind = std::string(call.info->resource);
  body.message = fmt::format("{} \"{}\" is forbidden: {}", call.info->resource, call.name, why);
  return body.response();
}

std::string bound_to(const Object& pod) {
  return text(*pod, "/spec/nodeName");
}

bool mounts(const Store& store, const std::string& node, const std::string& ns, const std::string& claim) {
  const auto pods = store.list("pods", ns, By::claim, claim);
  return std::any_of(pods.begin(), pods.end(), [&](const Object& pod) { return bound_to(pod) == node; });
}

// Returns true if the Node authorizer's graph connects the node with the object of the call.
bool reaches(const Store& store, const Call& call, const std::string& node) {
  const std::string_view resource = call.info->resource;
  if (resource == "persistentvolumeclaims") return mounts(store, node, call.ns, call.name);
  const Object object = store.get(call.key());
  if (!object) return false;
  if (resource == "pods" || resource == "volumeattachments") return text(*object, "/spec/nodeName") == node;
  return resource == "persistentvolumes" &&
         mounts(store, node, text(*object, "/spec/claimRef/namespace"), text(*object, "/spec/claimRef/name"));
}

// Returns true for resources that a node may get by name, but may neither list nor watch.
bool is_reached_by_name_only(std::string_view resource) {
  return resource.starts_with("persistentvolume") || resource == "volumeattachments" || resource == "configmaps";
}

std::string unrelated(const std::string& node) {
  return fmt::format("no relationship found between node '{}' and this object", node);
}

std::optional<std::string> problem_with_lease(const Call& call, const std::string& node) {
  if (call.verb == "list" || call.verb == "watch") return "can only get, create, update, patch, or delete a node lease";
  if (call.ns != node_lease_namespace)
    return fmt::format("can only access leases in the \"{}\" system namespace", node_lease_namespace);
  if (!call.name.empty() && call.name != node)
    return "can only access node lease with the same name as the requesting node";
  return std::nullopt;
}

std::optional<std::string> problem_with_node(const Call& call, const std::string& node, bool lists) {
  if (lists && call.option("fieldSelector") != "metadata.name=" + node)
    return fmt::format("node '{}' cannot read all nodes, only its own Node object", node);
  if (call.verb == "get" && call.name != node)
    return fmt::format("node '{}' cannot read '{}', only its own Node object", node, call.name);
  return std::nullopt;
}

// Returns true for labels of Kubernetes' own domains, except those that a kubelet may set.
bool is_restricted_label(const std::string& key) {
  const std::string domain = key.substr(0, key.find('/'));
  if (domain == key) return false;
  const auto below = [&](std::string_view parent) {
    return domain == parent || domain.ends_with("." + std::string(parent));
  };
  if (below("node-restriction.kubernetes.io")) return true;
  if (below("node.kubernetes.io") || below("kubelet.kubernetes.io") || key.starts_with("topology.kubernetes.io/"))
    return false;
  if (key == "kubernetes.io/hostname" || key == "kubernetes.io/arch" || key == "kubernetes.io/os") return false;
  return below("kubernetes.io") || below("k8s.io");
}

std::optional<http::Response> restricted_on_node(const Call& call, const std::string& node) {
  if (call.name != node)
    return inadmissible(call, fmt::format("node \"{}\" is not allowed to modify node \"{}\"", node, call.name));
  const Json body = Json::parse(call.request.body, nullptr, false);
  if (!body.is_object()) return std::nullopt;
  if (at(body, "/spec").contains("taints"))
    return inadmissible(call, fmt::format("node \"{}\" is not allowed to modify taints", node));
  for (const auto& [key, value] : at(body, "/metadata/labels").items())
    if (is_restricted_label(key)) return inadmissible(call, "is not allowed to modify labels: " + key);
  return std::nullopt;
}

}  // namespace

std::string node_of_user(std::string_view user) {
  return user.starts_with(node_user) ? std::string(user.substr(node_user.size())) : std::string();
}

std::optional<http::Response> refused_to_node(const Store& store, const Call& call, const std::string& node) {
  const std::string_view resource = call.info->resource;
  const bool lists = call.verb == "list" || call.verb == "watch";
  if (is_reached_by_name_only(resource) && call.subresource.empty()) {
    if (lists) return denied(call, node, "can only get individual resources of this type");
    if (call.verb == "get")
      return reaches(store, call, node) ? std::nullopt : std::optional(denied(call, node, unrelated(node)));
  }
  if (resource == "leases") {
    const auto problem = problem_with_lease(call, node);
    return problem ? std::optional(denied(call, node, *problem)) : std::nullopt;
  }
  if (std::find(std::begin(granted), std::end(granted), what_of(call)) == std::end(granted)) return denied(call, node);
  if (resource == "pods" && lists) {
    std::string problem;
    const auto fields = FieldSelector::parse(call.option("fieldSelector"), *call.info, &problem);
    if (!fields || fields->demand("/spec/nodeName") != node)
      return denied(call, node, "can only list/watch pods with spec.nodeName field selector");
  }
  if (resource == "pods" && call.verb == "get" && !reaches(store, call, node))
    return denied(call, node, unrelated(node));
  if (resource != "nodes") return std::nullopt;
  const auto problem = problem_with_node(call, node, lists);
  return problem ? std::optional(denied(call, node, *problem)) : std::nullopt;
}

std::optional<http::Response> restricted_for_node(const Store& store, const Call& call, const std::string& node) {
  const std::string_view resource = call.info->resource;
  if (resource == "nodes" && (call.verb == "patch" || call.verb == "update")) return restricted_on_node(call, node);
  if (resource != "pods") return std::nullopt;
  const bool evicts = call.subresource == "eviction", deletes = call.verb == "delete";
  if (call.verb == "create" && !evicts) {
    return inadmissible(
        call, fmt::format("pod does not have \"kubernetes.io/config.mirror\" annotation, node \"{}\" can only "
                          "create mirror pods",
                          node));
  }
  if (!evicts && !deletes) return std::nullopt;
  const Object pod = store.get(call.key());
  if (!pod) {
    if (deletes) return std::nullopt;  // the request goes on to the registry, which responds with 404
    StatusBody body;
    body.code = 404;
    body.reason = "NotFound";
    body.name = call.name;
    body.kind = "pod";
    body.message = fmt::format("pod \"{}\" not found", call.name);
    return body.response();
  }
  if (bound_to(pod) == node) return std::nullopt;
  return inadmissible(call,
                      evicts ? fmt::format("node {} can only evict pods with spec.nodeName set to itself", node)
                             : fmt::format("node \"{}\" can only delete pods with spec.nodeName set to itself", node));
}

const Identity* caller_of(const Switches& switches, const Call& call) {
  const auto known = switches.tokens.find(call.bearer_token());
  return known != switches.tokens.end() && known->second ? &*known->second : nullptr;
}

std::string user_of(const Switches& switches, const Call& call) {
  const Identity* identity = caller_of(switches, call);
  return identity ? identity->username : switches.user;
}

std::optional<http::Response> refused_to_caller(const World& world, const Call& call) {
  const Switches& switches = world.switches;
  if (world.now() < switches.shutting_down_until) {
    if (switches.says_retry_after) return try_again_later();
    http::Response response = shutting_down().response();
    response.headers.add("Retry-After", "1");
    return response;
  }
  if (world.now() < switches.throttled_until) return too_many_requests(switches.throttle_retry_after);
  const bool revoked = switches.tokens.count(call.bearer_token()) > 0 && !caller_of(switches, call);
  if (switches.unauthorized || revoked) return unauthorized().response();
  if (!call.info) return std::nullopt;
  const std::string user = user_of(switches, call);
  if (switches.forbidden.count(what_of(call)))
    return forbidden_by_rbac(user, call.verb, *call.info, call.subresource, call.ns, call.name).response();
  const std::string node = node_of_user(user);
  if (node.empty()) return std::nullopt;
  if (auto refusal = refused_to_node(world.store, call, node)) return refusal;
  return switches.node_restriction ? restricted_for_node(world.store, call, node) : std::nullopt;
}

namespace {

// Responds to a SelfSubjectAccessReview: everything is allowed that is not in Switches::forbidden.
http::Response access_review(const World& world, const Call& call) {
  Json review = Json::parse(call.request.body, nullptr, false);
  if (!review.is_object()) return bad_request("the object provided is unrecognized").response();
  const Json& wanted = at(review, "/spec/resourceAttributes");
  const std::string sub = text(wanted, "/subresource");
  const std::string what = text(wanted, "/verb") + " " + text(wanted, "/resource") + (sub.empty() ? "" : "/" + sub);
  review["status"] = {{"allowed", world.switches.forbidden.count(what) == 0}};
  review["kind"] = "SelfSubjectAccessReview";
  review["apiVersion"] = "authorization.k8s.io/v1";
  return json_response(201, review.dump());
}

http::Response self_review(const World& world, const Call& call) {
  const Identity* identity = caller_of(world.switches, call);
  Json info = {{"username", user_of(world.switches, call)}, {"groups", Json::array({"system:authenticated"})}};
  if (identity) {
    if (!identity->uid.empty()) info["uid"] = identity->uid;
    info["groups"] = identity->groups;
    for (const auto& [claim, value] :
         {std::pair("node-name", identity->node_name), std::pair("node-uid", identity->node_uid),
          std::pair("pod-name", identity->pod_name), std::pair("pod-uid", identity->pod_uid),
          std::pair("credential-id", identity->credential_id)})
      if (!value.empty()) info["extra"][std::string("authentication.kubernetes.io/") + claim] = Json::array({value});
  }
  const Json review = {{"kind", "SelfSubjectReview"},
                       {"apiVersion", "authentication.k8s.io/v1"},
                       {"metadata", {{"creationTimestamp", k8s::format_time(world.wall_now())}}},
                       {"status", {{"userInfo", std::move(info)}}}};
  return json_response(201, review.dump());
}

}  // namespace

std::optional<http::Response> review(const World& world, const Call& call) {
  if (call.verb != "create") return std::nullopt;
  if (call.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") return access_review(world, call);
  if (call.path == "/apis/authentication.k8s.io/v1/selfsubjectreviews") return self_review(world, call);
  return std::nullopt;
}

}  // namespace haulout::sim
