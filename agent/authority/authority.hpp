// What keeps an agent to its own Node, and what its credential reaches: found once at the start (find_authority.hpp),
// then plain data. The rules here are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/node/own_node.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Best first.
enum class AuthorityKind {
  impersonation,   // a pod's token; Node, pods and evictions in the name of the Node it runs on (NodeTransport)
  kubelet,         // the kubelet's own certificate
  policies,        // a pod's token; admission policies refuse it everything else
  service_account  // whatever the credential may do; nothing holds it
};
// As --authority spells it.
std::string_view to_string(AuthorityKind kind);

// What the credential reaches beside its Node and pods.
struct Rights {
  bool other_nodes = false;  // list Nodes
  bool leases = false;       // list and create Leases in the agent's namespace; not tried where they are no turns
  bool budgets = false;      // list PodDisruptionBudgets
  bool daemon_sets = false;  // get DaemonSets
  bool volumes = false;      // list VolumeAttachments, get PersistentVolumes
  bool config_maps = false;  // get the ConfigMap haulout
  bool events = false;       // create Events
  bool node_status = false;  // patch the status of the own Node
  bool operator==(const Rights&) const = default;
};

struct Authority {
  AuthorityKind kind = AuthorityKind::service_account;
  OwnNode node{};
  std::string user{};                           // as the API server knows the credential
  std::string credential{};                     // and this one of its credentials; may be empty
  std::string pod_ns{}, pod_name{}, pod_uid{};  // empty outside of a pod
  Rights rights{};
  // What is not possible with this credential, and why: a sentence each, for --check, explain and the log.
  std::vector<std::string> switched_off{};
  // Which better authorities were tried, and why they are not available: likewise.
  std::vector<std::string> passed_over{};

  // The Node to impersonate for NodeTransport; empty: nobody.
  std::string impersonated_node() const { return kind == AuthorityKind::impersonation ? node.name : std::string(); }
  // SelfSubjectAccessReview is right only about rights that RBAC alone decides.
  bool may_review_access() const { return kind == AuthorityKind::policies || kind == AuthorityKind::service_account; }
};

// What does not hold under this authority, and the way out: a sentence for --check and the log. Nothing: it holds.
std::optional<std::string> weakness(AuthorityKind kind);

// The namespace of "system:serviceaccount:<namespace>:<name>"; empty for anybody else.
std::string service_account_namespace(std::string_view user);
// The Node of "system:node:<name>"; empty for anybody else.
std::string node_of_user(std::string_view user);

// Which Node it is: the one that the credential is bound to (a token's claim, a kubelet certificate's name), else
// `node_name` of the options. The UID is known from a claim only, and empty otherwise. Errc::invalid when the two
// differ, or neither says anything.
Result<OwnNode> resolve_node(const std::string& node_name, const k8s::Self& self);

// In the order in which they are tried: the one that was asked for, or those that may fit this credential.
std::vector<AuthorityKind> candidates(AuthorityChoice wanted, const k8s::Self& self);

// Why turns cannot be had in this way with these rights, and the way out; nothing: they can.
std::optional<Error> turns_problem(const Authority& authority, SlotsChoice slots);

}  // namespace haulout::agent
