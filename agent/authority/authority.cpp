#include "agent/authority/authority.hpp"

#include <fmt/format.h>

#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "k8s/client.hpp"
#include "k8s/requests.hpp"
#include "k8s/status.hpp"

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
      return "the authority is policies: whoever steals this agent's token can list all pods, and evict a pod of "
             "another node in the first milliseconds after that pod was created; from Kubernetes 1.36 on use the "
             "authority impersonation (packaging/kustomize/base)";
    case AuthorityKind::service_account:
      return "authority is serviceaccount, so the agent does not check that the API server restricts this credential "
             "to its Node: a stolen copy may change every Node and evict every pod; apply the roles and policies of "
             "packaging/kustomize, and set authority to auto";
  }
  return std::nullopt;
}

bool may_change_taints(AuthorityKind kind) {
  return kind == AuthorityKind::policies || kind == AuthorityKind::service_account;
}

std::optional<std::string> taint_without_effect(AuthorityKind kind, const std::string& waiting_taint) {
  if (waiting_taint.empty() || may_change_taints(kind)) return std::nullopt;
  return fmt::format(
      "the option waiting-taint has no effect, because the authority is {}: as a node, an agent may not change taints "
      "(admission plug-in NodeRestriction); set authority to policies, with the component policies-only of "
      "packaging/kustomize, or remove waiting-taint",
      to_string(kind));
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
    return Error(Errc::invalid, fmt::format("node-name is {0}, but the credential ({1}) is bound to Node {2}: remove "
                                            "node-name, or use a credential of Node {0}",
                                            node_name, printable(self.username), printable(bound)));
  }
  if (!node_name.empty()) return OwnNode{node_name, {}};
  return Error(Errc::invalid,
               fmt::format("the agent does not know its Node: the credential ({}) names none. Set node-name "
                           "(HAULOUT_NODE_NAME), or use the kubelet's credentials, or a token bound to the agent's pod "
                           "(Kubernetes 1.30 or newer)",
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

Result<> may_use_slots(const Authority& authority, SlotsChoice slots) {
  if (slots != SlotsChoice::lease || (authority.rights.leases && authority.rights.other_nodes)) return {};
  return Error(Errc::unavailable,
               fmt::format("slots is lease, but the credential ({}, authority {}) cannot {}: give it that right, or "
                           "set slots to fleetlock (with fleetlock-url), or to none for a machine on its own",
                           printable(authority.user), to_string(authority.kind),
                           authority.rights.leases ? "list the Nodes of the pool"
                                                   : "list and create Leases (does their namespace exist?)"));
}

namespace {

// A trial request of find_authority(), and what its success or its denial means.
struct Attempt {
  // End of a message: "the credential cannot …" if it must succeed, "no rule restricts …" if it must be denied.
  std::string what;
  http::Request request;
  bool found_by_absence = false;  // a 404 also counts as success: the object need not exist
};

struct AttemptContext {
  OwnNode node;
  std::string ns;                         // namespace of the Leases and of the ConfigMap
  std::string pod_ns, pod_name, pod_uid;  // the agent's pod; outside of a pod `pod_ns` is `ns`, the others are empty
  WallTime now{};
  SlotsChoice slots = SlotsChoice::lease;
};

struct RightAttempt {
  bool Rights::* right;
  http::Request request;
  bool found_by_absence;
  std::string without;  // for messages: what the agent cannot do without this right
};

constexpr k8s::WriteOptions dry_run{.dry_run = k8s::DryRun::server};
// A name and a UID that no object has. If an object with the name exists after all, its UID differs, so the server
// rejects the request.
constexpr std::string_view nobody = "haulout-probe";
constexpr std::string_view nobodys_uid = "00000000-0000-0000-0000-000000000000";

http::Request list_one(const k8s::Api& api, std::string ns, std::string field_selector = {}) {
  k8s::ListOptions options;
  options.limit = 1;
  options.ns = std::move(ns);
  options.field_selector = std::move(field_selector);
  return k8s::list(api, options);
}

http::Request eviction(const std::string& ns, std::string_view pod, std::optional<std::int64_t> grace) {
  return k8s::evict(ns, pod, {.uid = std::string(nobodys_uid), .grace_seconds = grace, .write = dry_run});
}

http::Request label(const std::string& node, std::string_view key) {
  return k8s::patch<k8s::Node>({}, node, R"({"metadata":{"labels":{")" + std::string(key) + R"(":"true"}}})", dry_run);
}

k8s::NodeEvent event(const AttemptContext& context) {
  k8s::NodeEvent event;
  event.name = std::string(nobody) + "." + context.node.name;
  event.node = context.node.name;
  event.node_uid = context.node.uid;
  event.reason = event.action = "Probe";
  event.reporting_controller = "haulout.dev/agent";
  event.reporting_instance = context.node.name;
  event.event_time = context.now;
  return event;
}

// Returns the requests that must succeed, because the agent cannot work without them. Under `impersonation` they are
// sent as the Node.
std::vector<Attempt> needed_attempts(const AttemptContext& context) {
  // The requests that must succeed do no harm even if a proxy drops the `dryRun` parameter.
  return {
      {"list the pods on its own Node", list_one(k8s::Kind<k8s::Pod>::api, {}, "spec.nodeName=" + context.node.name)},
      {"cordon and annotate its own Node",
       k8s::patch<k8s::Node>({}, context.node.name, R"({"metadata":{"annotations":{"haulout.dev/probe":"true"}}})",
                             dry_run)},
      // If the credential may evict, the server answers that there is no such pod.
      {"evict pods on its own Node", eviction(context.pod_ns, nobody, std::nullopt), true}};
}

// Returns the requests that the API server must deny if it restricts a node's identity to its own Node.
std::vector<Attempt> refused_to_nodes(const AttemptContext& context) {
  // The admission plug-in NodeRestriction forbids kubelets to set labels with the prefix
  // node-restriction.kubernetes.io/.
  return {{"what the identity of a node may write (is the admission plug-in NodeRestriction on?)",
           label(context.node.name, "node-restriction.kubernetes.io/haulout-probe")}};
}

// Returns the requests that the API server must deny to the ServiceAccount itself, by its roles or by the admission
// policies. If it accepts one, `what` names the right that is not restricted. Only for an agent in a pod.
std::vector<Attempt> refused_to_service_accounts(const AttemptContext& context) {
  OwnNode somebody{std::string(nobody), std::string(nobodys_uid)};
  return {
      {"what the agents' ServiceAccount may write to Nodes", label(context.node.name, "haulout-probe.invalid/label")},
      {"the options (such as the grace period) with which the agents' ServiceAccount may evict pods",
       eviction(context.pod_ns, nobody, 30)},
      {"the pods that the agents' ServiceAccount may evict", eviction(context.pod_ns, context.pod_name, std::nullopt)},
      {"the nodes for which the agents' ServiceAccount may create Leases",
       k8s::create(slot_lease(context.ns, {std::string(nobody)}, 0, somebody, context.now), dry_run)}};
}

std::vector<RightAttempt> right_attempts(const AttemptContext& context) {
  const auto own_slot = slot_lease(context.ns, {std::string(nobody)}, 0, context.node, context.now);
  const bool leases = context.slots == SlotsChoice::lease;
  return {
      {&Rights::other_nodes, list_one(k8s::Kind<k8s::Node>::api, {}), false,
       leases ? "the credential may not list Nodes, which slots=lease needs to count unavailable nodes. Grant verb "
                "list on nodes, or set slots to fleetlock"
              : "the credential may not list Nodes, so the agent does not notice updates that failed on other nodes. "
                "Grant verb list on nodes"},
      {&Rights::leases, list_one(k8s::Kind<k8s::Lease>::api, context.ns), false,
       "the credential may not list Leases, which slots=lease needs. Grant verb list on leases (API group "
       "coordination.k8s.io), or set slots to fleetlock"},
      {&Rights::leases, k8s::create(own_slot, dry_run), false,
       "the credential cannot create Leases, which slots=lease needs. Grant verb create on leases (API group "
       "coordination.k8s.io) in an existing namespace, or set slots to fleetlock"},
      {&Rights::budgets, list_one(k8s::Kind<k8s::PodDisruptionBudget>::api, {}), false,
       "the credential may not list PodDisruptionBudgets: the agent sends one eviction at a time per namespace, and "
       "retries periodically instead of when a budget changes. Grant verb list on poddisruptionbudgets (API group "
       "\"policy\")"},
      {&Rights::daemon_sets, k8s::get<k8s::DaemonSet>(context.pod_ns, nobody).value(), true,
       "the credential may not get DaemonSets: pods whose DaemonSet was deleted stay on the node. Grant verb get on "
       "daemonsets (API group \"apps\")"},
      {&Rights::volumes, list_one(k8s::Kind<k8s::VolumeAttachment>::api, {}), false,
       "the credential may not list VolumeAttachments: a node becomes ready while volumes may still be attached, and "
       "--serialize-volumes has no effect. Grant verb list on volumeattachments (API group \"storage.k8s.io\")"},
      {&Rights::volumes, k8s::get<k8s::PersistentVolume>(nobody).value(), true,
       "the credential may not get PersistentVolumes: a node becomes ready while volumes may still be attached, and "
       "--serialize-volumes has no effect. Grant verb get on persistentvolumes"},
      {&Rights::config_maps, k8s::get<k8s::ConfigMap>(context.ns, "haulout"), true,
       "the credential may not get ConfigMaps, so pauses of the pool or the cluster have no effect. Grant verb get on "
       "configmaps in the agents' namespace, or pause each Node by its annotation haulout.dev/pause"},
      {&Rights::events, k8s::create(event(context), dry_run), false,
       "the credential may not create Events, so the agent's Events are missing. Grant verb create on events (API "
       "group \"events.k8s.io\")"},
      {&Rights::node_status, k8s::patch_node_status(context.node.name, R"({"status":{"conditions":[]}})", dry_run),
       false,
       "the agent cannot patch the status of its Node, so the Node gets no conditions (MaintenancePlanned, "
       "DrainInProgress, Drained, MaintenanceInProgress). Grant verb patch on nodes/status"},
  };
}

// Pause before a denied request is repeated. Measured: for 20 to 165 ms after its start, an API server denies requests
// that it allows later.
constexpr Duration doubt = std::chrono::seconds(1);

// The server's answer to a trial request. Not an aggregate and not implicitly constructible from an Error, so that
// `co_return error` makes a failed Result<Answer>, not an Answer with a refusal.
struct Answer {
  Answer() = default;
  static Answer refused(Error error) {
    Answer answer;
    answer.refusal = std::move(error);
    return answer;
  }
  std::optional<Error> refusal;  // empty if the server executed the request
  std::string body;              // of its response, if it executed the request
};

// Returns true if the server checked the right to impersonate any user, instead of the right to impersonate the node on
// which the pod runs: it does not support the latter.
bool knows_no_associated_nodes(const Error& refusal) {
  return k8s::is_forbidden(refusal) && refusal.peer && refusal.peer->kind == "users";
}

// Returns true if the denial comes from an exhausted ResourceQuota; then the credential has the right. Unlike the
// authorizer and the admission policies, a quota gives no cause.
bool is_want_of_room(const Error& refusal) {
  return k8s::is_forbidden(refusal) && !k8s::is_denied_by_rbac(refusal) && refusal.peer->structured &&
         refusal.peer->causes.empty();
}

class Search {
 public:
  Search(http::Transport& transport, Clock& clock, AuthorityOptions options, TimePoint deadline)
      : transport_(transport), clock_(clock), options_(std::move(options)), deadline_(deadline) {}

  Task<Authority> run();

 private:
  // Sends a trial request. An error means that the server's answer is unknown.
  Task<Answer> ask(http::Transport& as, http::Request request);
  // Tries an authority. Returns nothing if it works, otherwise why it does not.
  Task<std::optional<std::string>> try_out(AuthorityKind kind);
  std::optional<std::string> missing_for(AuthorityKind kind) const;
  Task<std::optional<std::string>> try_needed(http::Transport& as);
  Task<std::optional<std::string>> try_refused(http::Transport& as, std::vector<Attempt> attempts);
  Task<AuthorityKind> choose();
  // Reads the Node for its UID. Returns nothing on success, otherwise why the authority does not work, like try_out().
  // Fails if the Node does not exist, or if it is not the one to which the credential is bound.
  Task<std::optional<std::string>> identify_node(http::Transport& as);
  Task<> explore(http::Transport& as);
  Error nothing_holds() const;
  AttemptContext context() const;

  http::Transport& transport_;
  Clock& clock_;
  AuthorityOptions options_;
  TimePoint deadline_;
  bool doubted_ = false;
  k8s::Self self_;
  Authority found_;
};

Task<Answer> Search::ask(http::Transport& as, http::Request request) {
  for (;;) {
    CO_TRY(const http::Response response, co_await as.round_trip(request, deadline_));
    auto refusal = k8s::failure_of(response, clock_.wall_now());
    if (!refusal) {
      Answer answer;
      answer.body = response.body;
      co_return answer;
    }
    if (k8s::is_transient(*refusal) || k8s::is_unauthorized(*refusal)) co_return *std::move(refusal);
    if (!k8s::is_forbidden(*refusal) || doubted_) co_return Answer::refused(*std::move(refusal));
    doubted_ = true;
    co_await clock_.sleep_until(std::min(deadline_, saturating_add(clock_.now(), doubt)));
  }
}

AttemptContext Search::context() const {
  const std::string ns = found_.pod_ns.empty() ? options_.ns : found_.pod_ns;
  return {found_.node, options_.ns, ns, found_.pod_name, found_.pod_uid, clock_.wall_now(), options_.slots};
}

std::optional<std::string> Search::missing_for(AuthorityKind kind) const {
  const std::string who = printable(self_.username);
  switch (kind) {
    case AuthorityKind::impersonation:
    case AuthorityKind::policies:
      if (service_account_namespace(self_.username).empty()) return who + " is not a ServiceAccount";
      if (self_.node_name.empty() || self_.node_uid.empty() || self_.pod_name.empty())
        return "the token names no pod and Node: use the token that the kubelet projects into the agent's pod "
               "(Kubernetes 1.30 or newer), or one from TokenRequest with that pod as boundObjectRef";
      return std::nullopt;
    case AuthorityKind::kubelet:
      if (node_of_user(self_.username).empty()) return who + " is not the identity of a kubelet (system:node:…)";
      return std::nullopt;
    case AuthorityKind::service_account: return std::nullopt;
  }
  return std::nullopt;
}

Task<std::optional<std::string>> Search::try_needed(http::Transport& as) {
  for (Attempt& attempt : needed_attempts(context())) {
    CO_TRY(const Answer answer, co_await ask(as, std::move(attempt.request)));
    const auto& refusal = answer.refusal;
    if (refusal && !(attempt.found_by_absence && k8s::is_gone(*refusal)))
      co_return std::optional(fmt::format("the credential cannot {}: {}", attempt.what, refusal->message()));
  }
  co_return std::optional<std::string>();
}

Task<std::optional<std::string>> Search::try_refused(http::Transport& as, std::vector<Attempt> attempts) {
  for (Attempt& attempt : attempts) {
    CO_TRY(const Answer answer, co_await ask(as, std::move(attempt.request)));
    const auto& refusal = answer.refusal;
    if (refusal && k8s::is_forbidden(*refusal)) continue;
    if (!refusal) co_return std::optional(fmt::format("no rule restricts {}", attempt.what));
    co_return std::optional(fmt::format(
        "it is not proved that a rule restricts {}: the server answered a trial request with \"{}\", not with 403",
        attempt.what, refusal->message()));
  }
  co_return std::optional<std::string>();
}

Task<std::optional<std::string>> Search::try_out(AuthorityKind kind) {
  if (auto missing = missing_for(kind)) co_return std::move(missing);
  NodeTransport as_node(transport_, kind == AuthorityKind::impersonation ? found_.node.name : std::string());
  CO_TRY(auto problem, co_await identify_node(as_node));
  if (!problem) {
    CO_TRY(problem, co_await try_needed(as_node));
  }
  if (problem || kind == AuthorityKind::service_account) co_return std::move(problem);
  if (kind != AuthorityKind::policies) {
    CO_TRY(problem, co_await try_refused(as_node, refused_to_nodes(context())));
    if (problem) co_return std::move(problem);
  }
  // An agent that may impersonate can also omit the impersonation, so the ServiceAccount itself must be restricted,
  // too.
  if (kind == AuthorityKind::kubelet) co_return std::move(problem);
  co_return co_await try_refused(transport_, refused_to_service_accounts(context()));
}

Task<AuthorityKind> Search::choose() {
  for (const AuthorityKind kind : candidates(options_.wanted, self_)) {
    CO_TRY(const auto problem, co_await try_out(kind));
    if (!problem) co_return kind;
    found_.passed_over.push_back(fmt::format("{}: {}", to_string(kind), *problem));
  }
  co_return nothing_holds();
}

Error Search::nothing_holds() const {
  const std::string why = joined(found_.passed_over, "; ");
  if (options_.wanted == AuthorityChoice::service_account)
    return Error(Errc::unavailable,
                 fmt::format("the credential ({}) has too few rights: {}", printable(self_.username), why));
  if (options_.wanted != AuthorityChoice::automatic)
    return Error(Errc::unavailable,
                 fmt::format("the configured authority does not work: {}. Correct that (in a pod: packaging/kustomize "
                             "has the roles and policies), or set authority to auto",
                             why));
  return Error(Errc::unavailable,
               fmt::format("the agent needs a credential that can change only Node {1}. With the credential {0} no "
                           "authority works ({2}). In a pod, apply packaging/kustomize (before Kubernetes 1.36 with "
                           "its component policies-only). On a machine, use the kubelet's kubeconfig. Or set authority "
                           "to serviceaccount: a stolen credential could then change every Node",
                           printable(self_.username), printable(found_.node.name), why));
}

Task<std::optional<std::string>> Search::identify_node(http::Transport& as) {
  const std::string& name = found_.node.name;
  CO_TRY(const Answer answer, co_await ask(as, k8s::get<k8s::Node>(name)));
  const auto& refusal = answer.refusal;
  if (refusal && k8s::is_gone(*refusal))
    co_return Error(Errc::unavailable, fmt::format("the cluster has no Node {}: correct node-name if it is set, or "
                                                   "wait until the kubelet has registered the Node",
                                                   printable(name)));
  if (refusal && knows_no_associated_nodes(*refusal))
    co_return std::optional(
        fmt::format("the API server does not allow a pod to act as its own node; Kubernetes 1.36 and newer allow that "
                    "(feature gate ConstrainedImpersonation): {}",
                    refusal->message()));
  if (refusal) co_return std::optional(fmt::format("the credential cannot read its own Node: {}", refusal->message()));
  CO_TRY(k8s::Node node, k8s::only_named(name, k8s::decode<k8s::Node>(answer.body)));
  if (!found_.node.uid.empty() && found_.node.uid != node.uid)
    co_return Error(Errc::unavailable,
                    fmt::format("the token was issued for an earlier Node {} (UID {}, now {}): Kubernetes deletes this "
                                "agent's pod, and creates an agent's pod for the new Node",
                                printable(name), printable(found_.node.uid), node.uid));
  found_.node.uid = node.uid;
  found_.seen = std::move(node);
  co_return std::optional<std::string>();
}

Task<> Search::explore(http::Transport& as) {
  std::vector<RightAttempt> attempts = right_attempts(context());
  for (const RightAttempt& attempt : attempts) found_.rights.*attempt.right = true;
  // Try the right to Leases only if slots are Leases.
  found_.rights.leases = options_.slots == SlotsChoice::lease;
  for (RightAttempt& attempt : attempts) {
    bool& right = found_.rights.*attempt.right;
    if (!right) continue;
    CO_TRY(const Answer answer, co_await ask(as, std::move(attempt.request)));
    const auto& refusal = answer.refusal;
    if (!refusal && attempt.right == &Rights::other_nodes) found_.cluster_nodes = objects_in_collection(answer.body);
    if (!refusal || (attempt.found_by_absence && k8s::is_gone(*refusal)) || k8s::is_already_exists(*refusal) ||
        is_want_of_room(*refusal))
      continue;
    right = false;
    found_.switched_off.push_back(fmt::format("{} ({})", attempt.without, refusal->message()));
  }
  co_return Result<>();
}

Task<Authority> Search::run() {
  k8s::Client client(transport_, clock_);
  auto self = co_await client.review_self(deadline_);
  if (!self)
    co_return std::move(self).error().with_context("asking the API server for the identity of this credential");
  self_ = *std::move(self);
  auto node = resolve_node(options_.node_name, self_);
  if (!node) co_return std::move(node).error();
  found_.node = *std::move(node);
  found_.user = self_.username;
  found_.credential = self_.credential_id;
  found_.pod_name = self_.pod_name;
  found_.pod_uid = self_.pod_uid;
  if (!self_.pod_name.empty()) found_.pod_ns = service_account_namespace(self_.username);
  CO_TRY(found_.kind, co_await choose());
  NodeTransport as_chosen(transport_, found_.impersonated_node());
  CO_CHECK(co_await explore(as_chosen));
  co_return std::move(found_);
}

}  // namespace

Task<Authority> find_authority(http::Transport& transport, Clock& clock, AuthorityOptions options, TimePoint deadline) {
  Search search(transport, clock, std::move(options), deadline);
  co_return co_await search.run();
}

namespace {

constexpr std::string_view core = "/api/v1/";

// Returns the value of `key` in the query string, still percent-encoded.
std::string_view parameter(std::string_view target, std::string_view key) {
  const auto question = target.find('?');
  std::string_view rest = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
      return pair.substr(key.size() + 1);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

// Returns true if the field selector of the request has the requirement `field`=`node`.
bool selects(std::string_view target, std::string_view field, std::string_view node) {
  const std::string comma = k8s::percent_encode(",");
  const std::string wanted = k8s::percent_encode(std::string(field) + "=" + std::string(node));
  std::string_view rest = parameter(target, "fieldSelector");
  while (!rest.empty()) {
    const auto end = std::min(rest.find(comma), rest.size());
    if (rest.substr(0, end) == wanted) return true;
    rest.remove_prefix(std::min(end + comma.size(), rest.size()));
  }
  return false;
}

// Returns the part REST of "namespaces/NS/REST"; any other path as it is.
std::string_view without_namespace(std::string_view path) {
  constexpr std::string_view scope = "namespaces/";
  if (!path.starts_with(scope)) return path;
  const auto end = path.find('/', scope.size());
  return end == std::string_view::npos ? path : path.substr(end + 1);
}

}  // namespace

bool goes_as_node(const http::Request& request, std::string_view node) {
  const std::string_view target = request.target;
  std::string_view path = target.substr(0, target.find('?'));
  if (node.empty() || !path.starts_with(core)) return false;
  path.remove_prefix(core.size());
  const std::string own = "nodes/" + k8s::percent_encode(node);
  const bool reads = request.method == "GET";
  const bool patches = request.method == "PATCH";
  if (path == own) return reads || patches;
  if (path == own + "/status") return patches;
  if (path == "nodes") return reads && selects(target, "metadata.name", node);
  path = without_namespace(path);
  if (path == "pods") return reads && selects(target, "spec.nodeName", node);
  return request.method == "POST" && path.starts_with("pods/") && path.ends_with("/eviction");
}

http::Request NodeTransport::signed_by(http::Request request) const {
  if (goes_as_node(request, node_)) request.headers.set("Impersonate-User", "system:node:" + node_);
  return request;
}

Task<http::Response> NodeTransport::round_trip(http::Request request, TimePoint deadline) {
  return inner_.round_trip(signed_by(std::move(request)), deadline);
}

Task<std::unique_ptr<http::BodyStream>> NodeTransport::open(http::Request request, TimePoint deadline) {
  return inner_.open(signed_by(std::move(request)), deadline);
}

}  // namespace haulout::agent
