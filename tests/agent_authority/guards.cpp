#include "tests/agent_authority/guards.hpp"

#include <fmt/format.h>

#include "sim/status_bodies.hpp"

namespace haulout::testing {
namespace {

using sim::Call;
using sim::Json;
using sim::StatusBody;

constexpr std::string_view node_user = "system:node:";

std::string what_of(const Call& call) {
  return call.verb + " " + std::string(call.info->resource) + (call.subresource.empty() ? "" : "/" + call.subresource);
}

http::Response authorizer(const Call& call, const std::string& user, const std::string& why = {}) {
  StatusBody body = sim::forbidden_by_rbac(user, call.verb, *call.info, call.subresource, call.ns, call.name);
  if (!why.empty()) body.message += ": " + why;
  return body.response();
}

http::Response admission(const Call& call, const std::string& why) {
  StatusBody body;
  body.code = 403;
  body.reason = "Forbidden";
  body.name = call.name;
  body.kind = std::string(call.info->resource);
  body.message = fmt::format("{} \"{}\" is forbidden: {}", call.info->resource, call.name, why);
  return body.response();
}

http::Response policy(const Call& call, const std::string& name, const std::string& why) {
  const std::string text = fmt::format(
      "ValidatingAdmissionPolicy 'haulout-agent-{0}' with binding 'haulout-agent-{0}' denied request: {1}", name, why);
  StatusBody body;
  body.code = 403;
  body.reason = "Forbidden";
  body.name = call.name;
  body.kind = std::string(call.info->resource);
  body.message = fmt::format("{} \"{}\" is forbidden: {}", call.info->resource, call.name, text);
  body.causes = {{"", text, ""}};
  return body.response();
}

Json body_of(const Call& call) {
  Json body = Json::parse(call.request.body, nullptr, false);
  return body.is_object() ? body : Json::object();
}

bool evicts(const Call& call) {
  return call.info->resource == "pods" && call.subresource == "eviction";
}

bool is_ours(const std::string& key) {
  return key.starts_with("haulout.dev/") || key == "node.kubernetes.io/exclude-from-external-load-balancers";
}

}  // namespace

Guards::Guards(sim::Cluster& cluster) : cluster_(cluster) {
  cluster.server().intercept([this](const Call& call, const sim::AuditEntry&) { return judge(call); });
}

Guards::Refusal Guards::judge(const Call& call) const {
  const auto& tokens = cluster_.switches().tokens;
  const auto known = tokens.find(call.bearer_token());
  if (!call.info || known == tokens.end() || !known->second) return std::nullopt;
  const sim::Identity& caller = *known->second;
  if (const std::string as = call.header("Impersonate-User"); !as.empty()) return judge_impersonation(call, caller, as);
  if (caller.username.starts_with(node_user)) return judge_node(call, caller.username.substr(node_user.size()));
  if (denied.contains(what_of(call))) return authorizer(call, caller.username);
  return caller.username == held_user ? judge_policies(call, caller) : std::nullopt;
}

Guards::Refusal Guards::judge_impersonation(const Call& call, const sim::Identity& caller,
                                            const std::string& as) const {
  StatusBody body;
  body.code = 403;
  body.reason = "Forbidden";
  body.from_authorizer = true;
  const bool more = !call.header("Impersonate-Group").empty() || !call.header("Impersonate-Uid").empty();
  if (!impersonation || more) {
    body.kind = "users";
    body.name = as;
    body.message = fmt::format(
        "users \"{}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in API group \"\" at the cluster "
        "scope",
        as, caller.username);
    return body.response();
  }
  const bool own = as == std::string(node_user) + caller.node_name;
  if (own && impersonate_on.contains(what_of(call))) return judge_node(call, caller.node_name);
  body.kind = std::string(call.info->resource);
  body.message = fmt::format(
      "{} is forbidden: User \"{}\" cannot impersonate-on:{}-node:{} resource \"{}\" in API group \"\"",
      call.info->resource, caller.username, own ? "associated" : "arbitrary", call.verb, call.info->resource);
  return body.response();
}

Guards::Refusal Guards::judge_node(const Call& call, const std::string& node) const {
  const std::string user = std::string(node_user) + node;
  const std::string resource(call.info->resource);
  const std::string selector = call.option("fieldSelector");
  const bool lists = call.verb == "list" || call.verb == "watch";
  if (resource == "pods" && lists && selector.find("spec.nodeName=" + node) == std::string::npos)
    return authorizer(call, user, "can only list/watch pods with spec.nodeName field selector");
  if (resource == "pods" && call.verb == "get") return authorizer(call, user, "no relationship found");
  if (resource == "nodes" && lists && selector != "metadata.name=" + node)
    return authorizer(call, user, fmt::format("node '{}' cannot read all nodes, only its own Node object", node));
  if (resource == "nodes" && call.verb == "get" && call.name != node)
    return authorizer(call, user, fmt::format("node '{}' cannot read '{}', only its own Node object", node, call.name));
  if (resource == "leases")
    return authorizer(call, user, "can only access leases in the \"kube-node-lease\" system namespace");
  for (const char* unreachable :
       {"poddisruptionbudgets", "daemonsets", "volumeattachments", "persistentvolumes", "configmaps"})
    if (resource == unreachable) return authorizer(call, user);
  return node_restriction ? judge_node_admission(call, node) : std::nullopt;
}

Guards::Refusal Guards::judge_node_admission(const Call& call, const std::string& node) const {
  if (call.info->resource == "nodes" && call.verb == "patch") {
    if (call.name != node)
      return admission(call, fmt::format("node \"{}\" is not allowed to modify node \"{}\"", node, call.name));
    const Json body = body_of(call);
    for (const auto& [key, value] : sim::at(body, "/metadata/labels").items())
      if (key.starts_with("node-restriction.kubernetes.io/"))
        return admission(call, "is not allowed to modify labels: " + key);
    return std::nullopt;
  }
  if (!evicts(call)) return std::nullopt;
  const Json pod = cluster_.get("pods", call.ns, call.name);
  if (pod.is_null()) {
    StatusBody body;
    body.code = 404;
    body.reason = "NotFound";
    body.name = call.name;
    body.kind = "pod";
    body.message = fmt::format("pod \"{}\" not found", call.name);
    return body.response();
  }
  if (pod["spec"].value("nodeName", "") != node)
    return admission(call, fmt::format("node {} can only evict pods with spec.nodeName set to itself", node));
  return std::nullopt;
}

Guards::Refusal Guards::judge_policies(const Call& call, const sim::Identity& caller) const {
  const Json body = body_of(call);
  if (call.info->resource == "nodes" && call.verb == "patch" && policies.contains("node")) {
    if (caller.node_name.empty()) return policy(call, "node", "the credential names no node");
    if (call.name != caller.node_name) return policy(call, "node", "may only change its own Node " + caller.node_name);
    for (const auto& [key, value] : sim::at(body, "/metadata/labels").items())
      if (!is_ours(key)) return policy(call, "node", "only labels below haulout.dev/ may change");
  }
  if (evicts(call) && policies.contains("pods")) {
    const Json& options = sim::at(body, "/deleteOptions");
    if (sim::text(options, "/preconditions/uid").empty() || options.contains("gracePeriodSeconds"))
      return policy(call, "pods", "an eviction must carry deleteOptions.preconditions.uid and no gracePeriodSeconds");
  }
  if (evicts(call) && policies.contains("own-pods")) {
    const Json pod = cluster_.get("pods", call.ns, call.name);
    if (!pod.is_null() && pod["spec"].value("nodeName", "") != caller.node_name)
      return policy(call, "own-pods", fmt::format("Pod {}/{} is not on node {}", call.ns, call.name, caller.node_name));
    if (!pod.is_null() && pod["metadata"]["uid"] != sim::text(body, "/deleteOptions/preconditions/uid"))
      return policy(call, "own-pods", fmt::format("Pod {}/{} has another UID", call.ns, call.name));
  }
  const bool writes_lease = call.info->resource == "leases" && (call.verb == "create" || call.verb == "patch");
  if (writes_lease && policies.contains("slots") &&
      sim::text(body, "/spec/holderIdentity") != caller.node_name + "/" + caller.node_uid)
    return policy(call, "slots", "a slot may be taken only for the own node and must be owned by its Node object");
  return std::nullopt;
}

sim::Identity bound_to(const sim::Cluster& cluster, const std::string& node, const std::string& pod) {
  sim::Identity identity = sim::service_account("haulout", "agent");
  identity.node_name = node;
  identity.node_uid = cluster.get("nodes", "", node)["metadata"]["uid"];
  identity.pod_name = pod;
  identity.pod_uid = cluster.get("pods", "haulout", pod)["metadata"]["uid"];
  identity.credential_id = "JTI=6863";
  return identity;
}

sim::Identity kubelet_of(const std::string& node) {
  sim::Identity identity;
  identity.username = std::string(node_user) + node;
  identity.groups = {"system:nodes", "system:authenticated"};
  identity.credential_id = "X509SHA256=84c9";
  return identity;
}

}  // namespace haulout::testing
