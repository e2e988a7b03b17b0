// The invariants about EvictionRequests: the drain creates them only with the option, for instances of pods with
// responders that must leave its node, and changes no others. At the end it has withdrawn those of pods that are left.
// Judged from the store and the requests alone, without the drain's code.
#include <fmt/format.h>

#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {
namespace {

using sim::Json;

constexpr const char* requester = "haulout.dev/drain";

bool is_ours(const Json& request) {
  return sim::text(request, "/spec/requester") == requester;
}

}  // namespace

bool Invariants::writes_request(const sim::Call& call) {
  return call.info && call.info->resource == "evictionrequests" && call.subresource.empty() &&
         (call.verb == "create" || call.verb == "patch");
}

void Invariants::check_request(const sim::Call& call) {
  const std::string what = call.verb + " evictionrequests " + call.ns + "/" + call.name;
  if (given_.options.eviction_requests == drain::EvictionRequests::off)
    return violated("P1: an EvictionRequest without the option: " + what);
  const Json body = Json::parse(call.request.body, nullptr, false);
  if (call.verb == "patch") return check_intent(call, body, what);
  const auto pod = pods_.find(sim::text(body, "/spec/target/pod/uid"));
  if (pod == pods_.end() || !on_our_node(pod->second) ||
      pod->second.key != call.ns + "/" + sim::text(body, "/spec/target/pod/name"))
    return violated("P2: an EvictionRequest that names no pod of our node: " + what);
  if (pod->second.pod.eviction_responders.empty()) violated("requests: the pod has no responders: " + what);
  if (!cordon_claimed_) violated("P3: an EvictionRequest before the cordon was acknowledged: " + what);
  if (given_.sound_wire && pod->second.life == 0 && !pod->second.terminating && !pod->second.gone &&
      verdict(pod->second) != drain::Verdict::evict)
    violated(
        fmt::format("P2: an EvictionRequest, but policy says {}: {}", drain::to_string(verdict(pod->second)), what));
  if (!is_ours(body) || sim::text(body, "/spec/intent") != "Eviction")
    violated("requests: not a request of the drain for an eviction: " + what);
}

// A patch names the instance and the version of a request of ours, and changes nothing but the intent.
void Invariants::check_intent(const sim::Call& call, const Json& body, const std::string& what) {
  const Json stored = cluster_.get("evictionrequests", call.ns, call.name);
  const std::string uid = sim::text(body, "/metadata/uid");
  if (uid.empty() || sim::text(body, "/metadata/resourceVersion").empty())
    violated("P2: an EvictionRequest is changed without its UID and version: " + what);
  if (!stored.is_null() && sim::uid_of(stored) == uid && !is_ours(stored))
    violated("P5: the EvictionRequest of another requester is changed: " + what);
  const std::string intent = sim::text(body, "/spec/intent");
  const bool only = body.size() == 2 && sim::at(body, "/metadata").size() == 2 && sim::at(body, "/spec").size() == 1;
  if (!only || (intent != "Eviction" && intent != "Withdrawn"))
    violated("P1: more than the intent of an EvictionRequest is changed: " + what);
}

void Invariants::check_withdrawn(const std::string& outcome) {
  if (is_helpless() || !given_.options.policy.waits_for_work) return;
  for (const Json& request : cluster_.all("evictionrequests")) {
    if (!is_ours(request) || sim::terminating(request) || sim::text(request, "/spec/intent") != "Eviction") continue;
    const auto pod = pods_.find(sim::text(request, "/spec/target/pod/uid"));
    if (pod == pods_.end() || pod->second.gone || !on_our_node(pod->second)) continue;
    violated(fmt::format("requests: {}, but an EvictionRequest was left for {}", outcome, pod->second.key));
  }
}

}  // namespace haulout::scenario
