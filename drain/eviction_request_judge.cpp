#include "drain/eviction_request_judge.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"

namespace haulout::drain {

namespace {

using Next = RequestJudgement::Next;

RequestJudgement evict(std::string why) {
  return {Next::evict, std::move(why)};
}

// Judges a pod whose request asks for its eviction by how long nothing was heard about it.
RequestJudgement judge_silence(const RequestFacts& facts) {
  const RequestSign sign = sign_of(facts.process);
  const Duration limit = sign.heartbeat ? heartbeat_limit : facts.limit;
  const Duration left = limit - facts.silence;
  if (sign.responder.empty()) {
    if (left > Duration::zero())
      return {Next::wait, "its eviction was requested, and no responder has answered yet", left};
    return evict(fmt::format("no responder has answered its EvictionRequest within {}", format_duration(limit)));
  }
  if (left <= Duration::zero())
    return evict(fmt::format("responder {} has not {} its EvictionRequest for {}", sign.responder,
                             sign.heartbeat ? "reported on" : "answered", format_duration(limit)));
  if (!sign.heartbeat)
    return {Next::wait, fmt::format("responder {} has its turn, and has not answered yet", sign.responder), left};
  const std::string& message = facts.process->message;
  return {Next::wait,
          fmt::format("responder {} works on its eviction{}{}", sign.responder, message.empty() ? "" : ": ", message),
          left};
}

// Judges a pod whose request asks for its eviction, while nobody has read yet what the responders have reported: one
// may have been at work for hours.
RequestJudgement judge_unread(const RequestFacts& facts) {
  if (facts.silence >= facts.limit)
    return evict(fmt::format("what its responders report could not be read within {}", format_duration(facts.limit)));
  return {Next::wait, "it is not known yet what its responders have reported", facts.limit - facts.silence};
}

// Judges a pod without a request that asks for its eviction.
RequestJudgement judge_without(const RequestFacts& facts, Next next, std::string_view words) {
  if (facts.silence >= facts.limit)
    return evict(fmt::format("no EvictionRequest could be created within {}", format_duration(facts.limit)));
  return {next, std::string(words), facts.limit - facts.silence};
}

}  // namespace

RequestSign sign_of(const k8s::EvictionProcess* process) {
  if (process == nullptr || process->active.empty()) return {};
  return {process->active, process->heartbeat};
}

RequestJudgement judge_request(const RequestFacts& facts) {
  const k8s::EvictionRequest* const request = facts.request;
  if (!facts.known) return judge_without(facts, Next::wait, "it is not known yet which EvictionRequests exist");
  if (request == nullptr) {
    if (facts.created) return evict("somebody has deleted its EvictionRequest");
    return judge_without(facts, Next::create, "an EvictionRequest is being created for it");
  }
  if (request->terminating) return evict("its EvictionRequest is being deleted");
  if (!request->wants_eviction()) return judge_without(facts, Next::renew, "its EvictionRequest is being renewed");
  if (request->is_observed() && request->evicted) return evict("its EvictionRequest counts as fulfilled");
  if (request->is_observed() && request->failed) return evict("its EvictionRequest has failed: " + request->why_failed);
  if (!facts.answers_known) return judge_unread(facts);
  // Kubernetes calls the eviction API now, as the drain itself does.
  if (facts.process != nullptr && facts.process->active == k8s::imperative_evictor)
    return evict("none of its responders has evicted it");
  return judge_silence(facts);
}

}  // namespace haulout::drain
