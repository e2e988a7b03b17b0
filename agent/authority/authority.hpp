// The authority of an agent: what restricts it to its own Node, and which rights its credential has. find_authority.hpp
// determines it once at the start; afterwards it is plain data. The functions here are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/node/own_node.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// What the agent acts by, the preferred kind first.
enum class AuthorityKind {
  impersonation,   // a pod's token; requests for Node, pods and evictions impersonate the pod's Node (NodeTransport)
  kubelet,         // the certificate of the kubelet
  policies,        // a pod's token; admission policies refuse writes that concern other nodes and their pods
  service_account  // any credential with all its rights; nothing restricts it to its own Node
};
// Returns the value of --authority that selects this kind.
std::string_view to_string(AuthorityKind kind);

// Optional rights of the credential: without one of them the agent works, but can do less.
struct Rights {
  bool other_nodes = false;  // may list Nodes
  bool leases = false;       // may list and create Leases in the agent's namespace; false if slots are not Leases
  bool budgets = false;      // may list PodDisruptionBudgets
  bool daemon_sets = false;  // may get DaemonSets
  bool volumes = false;      // may list VolumeAttachments and get PersistentVolumes
  bool config_maps = false;  // may get the ConfigMap named haulout
  bool events = false;       // may create Events
  bool node_status = false;  // may patch the status of its own Node
  bool operator==(const Rights&) const = default;
};

struct Authority {
  AuthorityKind kind = AuthorityKind::service_account;
  OwnNode node{};
  std::string user{};                           // name of the credential's user, as the API server reports it
  std::string credential{};                     // ID of this credential of the user, for example "JTI=…"; may be empty
  std::string pod_ns{}, pod_name{}, pod_uid{};  // the agent's pod; empty if it does not run in one
  Rights rights{};
  // What the agent cannot do with this credential, and why: one sentence each, for --check, explain and the log.
  std::vector<std::string> switched_off{};
  // Better authorities that were tried, and why they are not available: one sentence each, as above.
  std::vector<std::string> passed_over{};

  // Name of the Node that NodeTransport impersonates; empty if it impersonates no Node.
  std::string impersonated_node() const { return kind == AuthorityKind::impersonation ? node.name : std::string(); }
  // Whether to ask SelfSubjectAccessReview: its answers are right only about rights that RBAC alone decides.
  bool may_review_access() const { return kind == AuthorityKind::policies || kind == AuthorityKind::service_account; }
};

// For --check and the log: a sentence about what this authority does not prevent, with the remedy. std::nullopt if it
// has no weakness.
std::optional<std::string> weakness(AuthorityKind kind);

// The namespace in "system:serviceaccount:<namespace>:<name>"; empty for any other user.
std::string service_account_namespace(std::string_view user);
// The Node in "system:node:<name>"; empty for any other user.
std::string node_of_user(std::string_view user);

// Returns the agent's Node: the one to which the credential is bound (a token's claim, the name in a kubelet
// certificate), else `node_name` from the options. The UID comes only from a claim, and is empty otherwise.
// Errc::invalid if the two names differ or if both are missing.
Result<OwnNode> resolve_node(const std::string& node_name, const k8s::Self& self);

// Returns the authorities to try, in order. If the options request one, returns only that one. Otherwise returns those
// that can fit this credential.
std::vector<AuthorityKind> candidates(AuthorityChoice wanted, const k8s::Self& self);

// Returns an error that says why the agent cannot use slots of this kind with the rights in `authority`, and what to
// do. Returns std::nullopt if it can use them.
std::optional<Error> turns_problem(const Authority& authority, SlotsChoice slots);

}  // namespace haulout::agent
