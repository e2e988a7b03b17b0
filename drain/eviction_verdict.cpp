#include "drain/eviction_verdict.hpp"

#include <algorithm>

#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

// The message of a refusal because two budgets select the pod (kube-apiserver 1.36, pods/eviction). The answer has
// neither a reason nor a cause, so it can be recognized only by this message.
constexpr std::string_view overlap_message =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
// The prefix that the API server adds to the message of a denial by a webhook. The code does not show that a webhook
// denied the request, because the webhook chooses the code.
constexpr std::string_view webhook_prefix = "admission webhook \"";
// The message for a webhook with failurePolicy Fail that cannot be called. Its reason is InternalError, as for many
// other failures.
constexpr std::string_view webhook_failed = "failed calling webhook \"";
// The prefix of a denial by a ValidatingAdmissionPolicy (kube-apiserver 1.36). The policy sets code and reason.
constexpr std::string_view policy_prefix = "ValidatingAdmissionPolicy '";
// The message of the NodeRestriction plug-in if its informer lags, or shows a pod of the same name on another node. No
// cause distinguishes it from other refusals.
constexpr std::string_view other_node_message = "can only evict pods with spec.nodeName set to itself";

// The ValidatingAdmissionPolicy of the agents' installation. Like the plug-in NodeRestriction, it refuses evictions of
// pods on other nodes.
constexpr std::string_view own_pods_policy = "haulout-own-pods";

constexpr std::string_view closed_budget = "DisruptionBudget";

EvictionVerdict classify_forbidden(const Error& error) {
  const PeerStatus& peer = *error.peer;
  if (peer.has_cause(reason::namespace_terminating)) return EvictionVerdict::ns_terminating;
  if (peer.kind == "poddisruptionbudget" || peer.kind == "poddisruptionbudgets") return EvictionVerdict::budget;
  const bool of_another_node = peer.message.find(other_node_message) != std::string::npos;
  if (of_another_node || admission_policy(peer.message) == own_pods_policy) return EvictionVerdict::replaced;
  if (k8s::is_denied_by_rbac(error)) return EvictionVerdict::forbidden;
  return EvictionVerdict::admission;
}

EvictionVerdict classify_too_many(const Error& error) {
  if (error.peer->has_cause(closed_budget)) return EvictionVerdict::budget;
  // A denial by an admission plug-in of the server has a Status and no Retry-After. Plain text comes from API flow
  // control or from a server that shuts down. Retry-After shows that the server itself is busy, for example with a
  // cache that is not filled yet, because denials by webhooks were classified before. In both cases the client must
  // slow down.
  return error.peer->structured && !error.retry_after ? EvictionVerdict::admission : EvictionVerdict::throttle;
}

EvictionVerdict classify_status(const Error& error) {
  const PeerStatus& peer = *error.peer;
  if (peer.structured && peer.message.starts_with(webhook_prefix)) return EvictionVerdict::admission;
  // A denial by a policy has the code that the policy sets: 401, 403, 413 or 422. classify_forbidden() handles 403.
  if (peer.structured && peer.code != 403 && !admission_policy(peer.message).empty()) return EvictionVerdict::admission;
  // Except for 401, 429 and 503, an answer without a Status comes from a proxy in front of the API server. It does not
  // show whether the pod can be evicted, so the request is sent again.
  if (!peer.structured && peer.code != 429 && peer.code != 401 && peer.code != 503) return EvictionVerdict::retry;
  switch (peer.code) {
    case 400:
      // A webhook's denial has no reason; a malformed request has the reason BadRequest.
      return peer.reason.empty() ? EvictionVerdict::admission : EvictionVerdict::fatal;
    case 401: return EvictionVerdict::throttle;
    case 403: return classify_forbidden(error);
    case 404: return EvictionVerdict::gone;
    case 409: return peer.kind == "Pod" ? EvictionVerdict::replaced : EvictionVerdict::retry;
    case 422: return EvictionVerdict::admission;
    case 429: return classify_too_many(error);
    case 500: return peer.message == overlap_message ? EvictionVerdict::overlap : EvictionVerdict::retry;
    case 503: return EvictionVerdict::throttle;
    case 405:
    case 406:
    case 413:
    case 414:
    case 415:
    case 431:
    case 501:
    case 505: return EvictionVerdict::fatal;
    default: return EvictionVerdict::retry;
  }
}

bool is_name(const std::string& text) {
  return text.size() <= 253 && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos;
}

// Returns the name between the quote at the end of `before` and the next quote. Empty if there is none, or if it is not
// a valid name in the API.
std::string quoted_name(const std::string& text, std::string_view before) {
  const std::size_t found = text.find(before);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + before.size();
  const std::size_t end = text.find(before.back(), begin);
  if (end == std::string::npos) return {};
  const std::string name = text.substr(begin, end - begin);
  return is_name(name) ? name : std::string();
}

// Returns "ns/name" of the webhook's Service that the server could not call; empty if the message names none. The
// server calls it as https://NAME.NAMESPACE.svc:PORT/… and quotes this URL if the call fails.
std::string service_called(const std::string& words) {
  constexpr std::string_view before = "Post \"https://";
  constexpr std::string_view cluster_suffix = ".svc";
  const std::size_t found = words.find(before);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + before.size();
  std::string host = words.substr(begin, words.find_first_of(":/\"", begin) - begin);
  if (!is_name(host) || !host.ends_with(cluster_suffix)) return {};
  host.resize(host.size() - cluster_suffix.size());
  const std::size_t dot = host.find('.');
  const bool two = dot != std::string::npos && dot == host.rfind('.') && dot != 0 && dot + 1 != host.size();
  return two ? host.substr(dot + 1) + "/" + host.substr(0, dot) : std::string();
}

}  // namespace

std::string budget_refusal(const Error& error) {
  if (!error.peer) return {};
  const auto& causes = error.peer->causes;
  const auto found =
      std::find_if(causes.begin(), causes.end(), [](const auto& cause) { return cause.reason == closed_budget; });
  return found == causes.end() ? std::string() : found->message;
}

std::optional<WebhookRefusal> webhook_refusal(const Error& error) {
  if (error.code() != Errc::status || !error.peer || !error.peer->structured) return std::nullopt;
  const PeerStatus& peer = *error.peer;
  const bool denied = peer.message.starts_with(webhook_prefix);
  if (!denied && peer.code != 500) return std::nullopt;
  std::string name = quoted_name(peer.message, denied ? webhook_prefix : webhook_failed);
  if (name.empty()) return std::nullopt;
  return WebhookRefusal{std::move(name), !denied, peer.message, denied ? std::string() : service_called(peer.message)};
}

std::string admission_policy(const std::string& message) {
  return quoted_name(message, policy_prefix);
}

EvictionVerdict classify_eviction(const Error& error) {
  switch (error.code()) {
    case Errc::status: return classify_status(error);
    // The server is unreachable, or something that the connection needs is missing. That affects every pod, so the
    // whole client waits.
    case Errc::dns:
    case Errc::unreachable:
    case Errc::tls:
    case Errc::unavailable: return EvictionVerdict::throttle;
    case Errc::timeout:
    case Errc::reset:
    case Errc::protocol:
    case Errc::decode: return EvictionVerdict::retry;
    case Errc::invalid: return EvictionVerdict::fatal;
  }
  return EvictionVerdict::fatal;
}

BackoffOptions backoff_after(EvictionVerdict verdict) {
  using namespace std::chrono_literals;
  using Jitter = BackoffOptions::Jitter;
  switch (verdict) {
    case EvictionVerdict::budget:
    case EvictionVerdict::admission:
    case EvictionVerdict::ns_terminating: return {5s, 1.5, 30s, Jitter::equal};
    case EvictionVerdict::overlap: return {40s, 1.0, 40s, Jitter::equal};
    // A single refusal right after a reconnect proves nothing, because the authorizer may not be ready yet (measured up
    // to 165 ms). From the second refusal on the pauses are long.
    case EvictionVerdict::forbidden: return {2s, 30.0, 60s, Jitter::equal};
    case EvictionVerdict::fatal: return {60s, 1.0, 60s, Jitter::equal};
    case EvictionVerdict::replaced: return {2s, 2.0, 30s, Jitter::equal};
    case EvictionVerdict::throttle: return {800ms, 2.0, 30s, Jitter::equal};
    case EvictionVerdict::retry: return {200ms, 2.0, 10s, Jitter::full};
    case EvictionVerdict::accepted:
    case EvictionVerdict::gone: break;
  }
  return {};
}

std::string_view park_reason(EvictionVerdict verdict) {
  switch (verdict) {
    case EvictionVerdict::budget: return reason::blocked_by_budget;
    case EvictionVerdict::overlap: return reason::overlapping_budgets;
    case EvictionVerdict::admission: return reason::admission_denied;
    case EvictionVerdict::ns_terminating: return reason::namespace_terminating;
    case EvictionVerdict::throttle: return reason::throttled;
    case EvictionVerdict::retry: return reason::server_error;
    case EvictionVerdict::replaced: return reason::awaiting_watch;
    case EvictionVerdict::forbidden: return reason::forbidden;
    case EvictionVerdict::fatal: return reason::rejected;
    case EvictionVerdict::accepted:
    case EvictionVerdict::gone: break;
  }
  return "";
}

}  // namespace haulout::drain
