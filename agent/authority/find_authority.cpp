#include "agent/authority/find_authority.hpp"

#include <fmt/format.h>

#include "agent/authority/attempts.hpp"
#include "agent/authority/node_transport.hpp"
#include "base/text.hpp"
#include "k8s/client.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace {

// Measured: for 20 to 165 ms after its start, an API server refuses requests that it allows later.
constexpr Duration doubt = std::chrono::seconds(1);

// Neither an aggregate nor implicitly constructible from an Error. So `co_return error` makes a failed Result<Answer>,
// not an Answer with a refusal.
struct Answer {
  Answer() = default;
  static Answer refused(Error error) {
    Answer answer;
    answer.refusal = std::move(error);
    return answer;
  }
  std::optional<Error> refusal;  // empty if the server carried the request out
};

// The server checked the right to impersonate users in general, instead of the right to impersonate the own node.
bool knows_no_associated_nodes(const Error& refusal) {
  return k8s::is_forbidden(refusal) && refusal.peer && refusal.peer->kind == "users";
}

// The refusal comes from an exhausted ResourceQuota, so the credential has the right. Unlike the authorizer and the
// admission policies, a quota gives no cause.
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
  // An error means that the answer is unknown.
  Task<Answer> ask(http::Transport& as, http::Request request);
  // Tries an authority. Returns std::nullopt if it works, otherwise why it does not.
  Task<std::optional<std::string>> try_out(AuthorityKind kind);
  std::optional<std::string> missing_for(AuthorityKind kind) const;
  Task<std::optional<std::string>> try_needed(http::Transport& as);
  Task<std::optional<std::string>> try_refused(http::Transport& as, std::vector<Attempt> attempts);
  Task<AuthorityKind> choose();
  // Reads the Node for its UID. Returns the same as try_out(). Also an error if the Node does not exist, or is not the
  // one to which the credential is bound.
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
    if (!refusal) co_return Answer();
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
        return "the token is not bound to a pod on a Node: use the token that the kubelet projects into the agent's "
               "pod, or one from TokenRequest with that pod as boundObjectRef";
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
      co_return std::optional(fmt::format("it may not {}: {}", attempt.what, refusal->message()));
  }
  co_return std::optional<std::string>();
}

Task<std::optional<std::string>> Search::try_refused(http::Transport& as, std::vector<Attempt> attempts) {
  for (Attempt& attempt : attempts) {
    CO_TRY(const Answer answer, co_await ask(as, std::move(attempt.request)));
    const auto& refusal = answer.refusal;
    if (refusal && k8s::is_forbidden(*refusal)) continue;
    const std::string instead = refusal ? fmt::format(" ({})", refusal->message()) : std::string();
    co_return std::optional(fmt::format("nothing restricts {}{}", attempt.what, instead));
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
  // An agent that can impersonate can also omit the impersonation. So the ServiceAccount itself must be restricted,
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
    return Error(Errc::unavailable, fmt::format("the configured authority does not work: {}", why));
  return Error(Errc::unavailable,
               fmt::format("the API server does not restrict the credential ({}) to Node {}: {}. Apply the roles and "
                           "policies of the manifests (before Kubernetes 1.36 with the component policies-only), or "
                           "accept the risk with authority serviceaccount",
                           printable(self_.username), printable(found_.node.name), why));
}

Task<std::optional<std::string>> Search::identify_node(http::Transport& as) {
  const std::string& name = found_.node.name;
  CO_TRY(const Answer answer, co_await ask(as, k8s::get<k8s::Node>(name)));
  const auto& refusal = answer.refusal;
  if (refusal && k8s::is_gone(*refusal))
    co_return Error(Errc::unavailable, fmt::format("the cluster has no Node {}: correct node-name, or wait until the "
                                                   "kubelet has registered it",
                                                   printable(name)));
  if (refusal && knows_no_associated_nodes(*refusal))
    co_return std::optional(
        fmt::format("the API server does not allow a pod to act as its own node, which Kubernetes 1.36 and newer do "
                    "(feature gate ConstrainedImpersonation): {}",
                    refusal->message()));
  if (refusal) co_return std::optional(fmt::format("it may not read its own Node: {}", refusal->message()));
  k8s::Client client(as, clock_);
  CO_TRY(const k8s::Node node, co_await client.get_node(name, deadline_));
  if (!found_.node.uid.empty() && found_.node.uid != node.uid)
    co_return Error(Errc::unavailable, fmt::format("the token was issued for an earlier Node {} (UID {}, now {}): its "
                                                   "pod will be deleted, and the new Node gets a pod of its own",
                                                   printable(name), printable(found_.node.uid), node.uid));
  found_.node.uid = node.uid;
  co_return std::optional<std::string>();
}

Task<> Search::explore(http::Transport& as) {
  found_.rights = {true, true, true, true, true, true, true, true};
  // The right to Leases is tried only if slots are Leases.
  found_.rights.leases = options_.slots == SlotsChoice::lease;
  for (RightAttempt& attempt : right_attempts(context())) {
    bool& right = found_.rights.*attempt.right;
    if (!right) continue;
    CO_TRY(const Answer answer, co_await ask(as, std::move(attempt.request)));
    const auto& refusal = answer.refusal;
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

}  // namespace haulout::agent
