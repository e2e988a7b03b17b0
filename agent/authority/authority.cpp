#include "agent/authority/authority.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view node_user = "system:node:";
constexpr std::string_view service_account_user = "system:serviceaccount:";

}  // namespace

std::string_view to_string(AuthorityKind kind) {
  switch (kind) {
    case AuthorityKind::impersonation: return "impersonation";
    case AuthorityKind::kubelet: return "kubelet";
    case AuthorityKind::policies: return "policies";
    case AuthorityKind::service_account: return "serviceaccount";
  }
  return "";
}

std::optional<std::string> weakness(AuthorityKind kind) {
  switch (kind) {
    case AuthorityKind::impersonation:
    case AuthorityKind::kubelet: return std::nullopt;
    case AuthorityKind::policies:
      return "a stolen token of this kind can evict pods of other nodes in the first milliseconds after their "
             "creation, before the policies apply, and can list all pods; from Kubernetes 1.36 on use impersonation "
             "(the kustomize base)";
    case AuthorityKind::service_account:
      return "the API server does not restrict this credential to its Node: a stolen copy could change every Node and "
             "evict every pod; use the roles and policies of the manifests";
  }
  return std::nullopt;
}

std::string service_account_namespace(std::string_view user) {
  if (!user.starts_with(service_account_user)) return {};
  user.remove_prefix(service_account_user.size());
  const auto end = user.find(':');
  return end == std::string_view::npos ? std::string() : std::string(user.substr(0, end));
}

std::string node_of_user(std::string_view user) {
  return user.starts_with(node_user) ? std::string(user.substr(node_user.size())) : std::string();
}

Result<OwnNode> resolve_node(const std::string& node_name, const k8s::Self& self) {
  const std::string of_certificate = node_of_user(self.username);
  const std::string& bound = self.node_name.empty() ? of_certificate : self.node_name;
  if (!bound.empty()) {
    if (node_name.empty() || node_name == bound) return OwnNode{bound, self.node_uid};
    return Error(
        Errc::invalid,
        fmt::format("node-name is {}, but the credential ({}) is bound to Node {}: remove node-name, or use the "
                    "credential of that node",
                    node_name, printable(self.username), printable(bound)));
  }
  if (!node_name.empty()) return OwnNode{node_name, {}};
  return Error(
      Errc::invalid,
      fmt::format("the agent does not know its Node: the credential ({}) is bound to none. Set node-name "
                  "(HAULOUT_NODE_NAME), or use a token that is bound to the agent's pod, or the kubelet's credentials",
                  printable(self.username)));
}

std::vector<AuthorityKind> candidates(AuthorityChoice wanted, const k8s::Self& self) {
  switch (wanted) {
    case AuthorityChoice::automatic: break;
    case AuthorityChoice::impersonation: return {AuthorityKind::impersonation};
    case AuthorityChoice::kubelet: return {AuthorityKind::kubelet};
    case AuthorityChoice::policies: return {AuthorityKind::policies};
    case AuthorityChoice::service_account: return {AuthorityKind::service_account};
  }
  if (!node_of_user(self.username).empty()) return {AuthorityKind::kubelet};
  return {AuthorityKind::impersonation, AuthorityKind::policies};
}

std::optional<Error> turns_problem(const Authority& authority, SlotsChoice slots) {
  if (slots != SlotsChoice::lease || (authority.rights.leases && authority.rights.other_nodes)) return std::nullopt;
  return Error(
      Errc::unavailable,
      fmt::format("slots is lease, but the credential ({}, authority {}) may not {}: give it that right, or set "
                  "slots to fleetlock (with fleetlock-url), or to none for a machine on its own",
                  printable(authority.user), to_string(authority.kind),
                  authority.rights.leases ? "list the Nodes of the pool" : "hold Leases"));
}

}  // namespace haulout::agent
