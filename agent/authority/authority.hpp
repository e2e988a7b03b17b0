// The authority of an agent: what restricts it to its own Node, and which rights its credential has. find_authority()
// determines it once at the start; afterwards it is plain data. Also the transport that acts by the authority
// `impersonation`. The other functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/node/pool.hpp"
#include "http/transport.hpp"
#include "k8s/objects.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Kinds of authority by which an agent acts, the preferred kind first.
enum class AuthorityKind {
  impersonation,   // a pod's token; requests for Node, pods and evictions impersonate the pod's Node (NodeTransport)
  kubelet,         // the certificate of the kubelet
  policies,        // a pod's token; admission policies refuse writes that concern other nodes and their pods
  service_account  // any credential with all its rights; nothing restricts the agent to its own Node
};
// Returns the value of --authority that selects this kind.
std::string_view to_string(AuthorityKind kind);

// Optional rights of the credential. Without one of them the agent works, but some functions are off.
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

// The result of find_authority(): how and as whom the agent acts.
struct Authority {
  AuthorityKind kind = AuthorityKind::service_account;
  OwnNode node{};
  std::string user{};                           // name of the credential's user, as the API server reports it
  std::string credential{};                     // ID of this credential of the user, for example "JTI=…"; may be empty
  std::string pod_ns{}, pod_name{}, pod_uid{};  // the agent's pod; empty if it does not run in one
  Rights rights{};
  k8s::Node seen{};               // its own Node, as find_authority() read it
  std::size_t cluster_nodes = 0;  // number of Nodes of the cluster at that time; 0 if it is not known
  // What the agent cannot do with this credential, and why: one sentence each, for --check, explain and the log.
  std::vector<std::string> switched_off{};
  // Better authorities that were tried, and why they are not available: one sentence each, as above.
  std::vector<std::string> passed_over{};

  // Name of the Node that NodeTransport impersonates; empty if it impersonates no Node.
  std::string impersonated_node() const { return kind == AuthorityKind::impersonation ? node.name : std::string(); }
  // Returns true if SelfSubjectAccessReview may be used: its answers are correct only for rights that RBAC alone
  // decides.
  bool may_review_access() const { return kind == AuthorityKind::policies || kind == AuthorityKind::service_account; }
};

// Returns a sentence for --check and the log about what this authority does not prevent, with the remedy. Returns
// nothing if it has no weakness.
std::optional<std::string> weakness(AuthorityKind kind);

// Returns true if an agent of this kind may change taints of its Node. The admission plug-in NodeRestriction forbids it
// to nodes.
bool may_change_taints(AuthorityKind kind);
// Returns a sentence for --check and the log, with the remedy, if --waiting-taint is set and the agent may not change
// taints.
std::optional<std::string> taint_without_effect(AuthorityKind kind, const std::string& waiting_taint);

// Returns the namespace in "system:serviceaccount:<namespace>:<name>"; empty for any other user.
std::string service_account_namespace(std::string_view user);
// Returns the Node in "system:node:<name>"; empty for any other user.
std::string node_of_user(std::string_view user);

// Returns the agent's Node: the one to which the credential is bound (a token's claim, the name in a kubelet
// certificate), otherwise `node_name` from the options. The UID comes only from a claim, and is empty otherwise. Fails
// with Errc::invalid if the two names differ or if both are missing.
Result<OwnNode> resolve_node(const std::string& node_name, const k8s::Self& self);

// Returns the authorities to try, in order. If the options request one, returns only that one. Otherwise returns those
// that can fit this credential.
std::vector<AuthorityKind> candidates(AuthorityChoice wanted, const k8s::Self& self);

// Succeeds if the agent can use slots of this kind with the rights in `authority`. Otherwise fails with
// Errc::unavailable; the message names the remedy.
Result<> may_use_slots(const Authority& authority, SlotsChoice slots);

// What find_authority() needs to know of the configuration.
struct AuthorityOptions {
  AuthorityChoice wanted = AuthorityChoice::automatic;
  std::string node_name{};     // empty: the Node of the credential
  std::string ns = "haulout";  // namespace of Leases and ConfigMap
  SlotsChoice slots = SlotsChoice::lease;
};

// Finds out by trial requests which Node this agent serves, and what restricts it to that Node. Changes nothing,
// because every write is a dry run. Trial evictions name a pod that does not exist, or a UID that no pod has.
// `transport` uses the credential without impersonation. Borrows `transport` and `clock` while it runs.
//
// Chooses the best authority that works, or tries only the one that the options request. Before it accepts an authority
// that restricts the agent, it sends a write that the server must deny. If the server accepts that write (no admission
// plug-in NodeRestriction, or no policies), the authority is rejected. A plain ServiceAccount is chosen only if the
// options request it.
//
// Fails with an error for which k8s::is_transient() is true if the API server is unreachable or overloaded; the caller
// tries again later. All other errors are final, and need a person: Errc::invalid (node-name), Errc::unavailable (no
// authority works, or the Node does not exist), or the server's error. After the first 403 it waits one second and
// repeats that request, because a server that has just started denies requests that it allows later. Cancellable.
Task<Authority> find_authority(http::Transport& transport, Clock& clock, AuthorityOptions options, TimePoint deadline);

// Returns how many objects a collection has, from the first page of its list. Returns 0 if the page does not tell.
// Pure.
std::size_t objects_in_collection(std::string_view first_page);

// Returns true for get, list, watch or patch of this Node, patch of its status, list or watch of the pods on it, and
// every eviction (the server checks that the evicted pod is on the Node). Pure.
bool goes_as_node(const http::Request& request, std::string_view node);

// Transport decorator for the authority `impersonation`. Requests of the agent for its own Node and the pods on it
// impersonate that Node, so that the API server restricts them to what a kubelet may do there. All other requests
// (Leases, other Nodes, PodDisruptionBudgets, DaemonSets, ConfigMaps, Events, reviews) use the credential's own name.
//
// Never impersonates a group, UID or extra: each of them would need another, wider right. Borrows the inner transport,
// which must not impersonate by itself. Errors and cancellation are those of the inner transport.
class NodeTransport final : public http::Transport {
 public:
  // If the name is empty, impersonates no Node.
  NodeTransport(http::Transport& inner, std::string impersonated_node)
      : inner_(inner), node_(std::move(impersonated_node)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  http::Request signed_by(http::Request request) const;

  http::Transport& inner_;
  std::string node_;
};

}  // namespace haulout::agent
