#include "tests/agent/authority/guards.hpp"

#include <fmt/format.h>

#include "sim/access.hpp"
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

http::Response authorizer(const Call& call, const std::string& user) {
  return sim::forbidden_by_rbac(user, call.verb, *call.info, call.subresource, call.ns, call.name).response();
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

Guards::Guards(sim::TestCluster& cluster) : cluster_(cluster) {
  cluster.server().intercept([this](const Call& call, const sim::AuditEntry&) { return judge(call); });
}

Guards::Refusal Guards::judge(const Call& call) const {
  const auto& tokens = cluster_.switches().tokens;
  const auto known = tokens.find(call.bearer_token());
  if (!call.info || known == tokens.end() || !known->second) return std::nullopt;
  const sim::Identity& caller = *known->second;
  if (const std::string as = call.header("Impersonate-User"); !as.empty()) return judge_impersonation(call, caller, as);
  // The caller is a node: the simulated server's own Node authorizer has already permitted the request.
  if (!sim::node_of_user(caller.username).empty()) return std::nullopt;
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
  auto refusal = sim::refused_to_node(cluster_.store(), call, node);
  if (refusal || !cluster_.switches().node_restriction) return refusal;
  return sim::restricted_for_node(cluster_.store(), call, node);
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

sim::Identity bound_to(const sim::TestCluster& cluster, const std::string& node, const std::string& pod) {
  sim::Identity identity = sim::service_account("haulout", "agent");
  identity.node_name = node;
  identity.node_uid = cluster.get("nodes", "", node)["metadata"]["uid"];
  identity.pod_name = pod;
  identity.pod_uid = cluster.get("pods", "haulout", pod)["metadata"]["uid"];
  identity.credential_id = "JTI=6863";
  return identity;
}

}  // namespace haulout::testing
