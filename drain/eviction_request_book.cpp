#include "drain/eviction_request_book.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "base/duration.hpp"
#include "drain/reasons.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

constexpr BackoffOptions retry_of_request{std::chrono::seconds(1), 2.0, std::chrono::minutes(1),
                                          BackoffOptions::Jitter::equal};
// One 403 proves nothing, because an authorizer that has just started may refuse wrongly.
constexpr unsigned refusals_that_count = 2;
// A request whose intent was changed so often is changed again only after a pause: somebody else may set it back.
constexpr unsigned flips_that_count = 2;
// An earlier sign counts as at most this long ago, so that no clock makes the subtraction overflow.
constexpr Duration longest_silence = std::chrono::hours(24);

// Returns true if the pod must leave, and policy does not hold it up.
bool is_to_go(const TrackedPod& tracked) {
  return must_leave(tracked.state) && !(tracked.state == PodState::parked && tracked.hold == TrackedPod::Hold::policy);
}

// Returns true if the request names this instance of this pod.
bool names(const k8s::EvictionRequest& request, const k8s::Pod& pod) {
  return request.pod_uid == pod.uid && request.ns == pod.ns && request.pod_name == pod.name;
}

bool is_there(const std::map<std::string, TrackedPod>& pods, const std::string& pod_uid) {
  const auto pod = pods.find(pod_uid);
  return pod == pods.end() || pod->second.state != PodState::vanished;
}

}  // namespace

bool is_open(const k8s::EvictionRequest& request) {
  return request.is_ours() && request.wants_eviction() && !request.terminating;
}

bool EvictionRequestBook::is_on() const {
  return options_.eviction_requests != EvictionRequests::off && options_.policy.waits_for_work;
}

EvictionRequestBook::Obstacle EvictionRequestBook::Obstacle::of(const Error& error) {
  const Kind kind = k8s::is_not_found(error)   ? Kind::unserved
                    : k8s::is_forbidden(error) ? Kind::right_missing
                                               : Kind::other;
  return {kind, error.message()};
}

const k8s::EvictionRequest* EvictionRequestBook::request_of(const k8s::Pod& pod) const {
  const auto found = std::ranges::find_if(requests_, [&](const auto& entry) {
    return entry.second.is_ours() && names(entry.second, pod) && entry.second.name == k8s::request_name(pod.uid);
  });
  return found == requests_.end() ? nullptr : &found->second;
}

const k8s::EvictionProcess* EvictionRequestBook::process_of(const k8s::Pod& pod) const {
  const auto found = std::ranges::find_if(processes_, [&](const auto& entry) {
    return entry.second.pod_uid == pod.uid && entry.second.ns == pod.ns && !entry.second.ended;
  });
  return found == processes_.end() ? nullptr : &found->second;
}

RequestFacts EvictionRequestBook::facts_of(const k8s::Pod& pod, const State& state) const {
  RequestFacts facts;
  facts.request = request_of(pod);
  facts.process = process_of(pod);
  facts.known = known_;
  facts.answers_known = processes_known_;
  facts.created = state.created;
  facts.limit = options_.eviction_request_limit;
  return facts;
}

EvictionRequestBook::State& EvictionRequestBook::state_of(const std::string& pod_uid) {
  const auto [found, is_new] = states_.try_emplace(pod_uid);
  if (is_new) found->second.retry = Backoff(retry_of_request);
  return found->second;
}

// Notes when the last sign was given. A run that was interrupted does not begin to wait anew.
void EvictionRequestBook::listen(State& state, const RequestFacts& facts, TimePoint now) {
  if (!state.silent_since) state.silent_since = now;
  const RequestSign sign = sign_of(facts.process);
  if (!known_ || !processes_known_ || state.sign == sign) return;
  std::optional<WallTime> at;
  if (!sign.responder.empty())
    at = sign.heartbeat ? sign.heartbeat : facts.process->start;
  else if (!state.sign && facts.request != nullptr && facts.request->generation == 1)
    at = facts.request->created;  // the intent of a later generation has changed at a time that nothing shows
  if (at)
    state.silent_since = now - std::clamp<Duration>(server_now_() - *at, Duration::zero(), longest_silence);
  else if (state.sign)
    state.silent_since = now;
  state.sign = sign;
}

std::optional<EvictionGuard::Hold> EvictionRequestBook::held(const k8s::Pod& pod, TimePoint now) {
  if (!is_on() || unusable_ || !has_responders(pod) || pod.finished()) return std::nullopt;
  State& state = state_of(pod.uid);
  state.wanted = true;
  if (!state.refused.empty()) {
    state.why = state.refused;
    return std::nullopt;
  }
  RequestFacts facts = facts_of(pod, state);
  state.created |= facts.request != nullptr;
  listen(state, facts, now);
  facts.silence = now - *state.silent_since;
  RequestJudgement judgement = judge_request(facts);
  if (judgement.next == RequestJudgement::Next::evict) {
    state.why = std::move(judgement.why);
    return std::nullopt;
  }
  state.why.clear();
  return Hold{reason::eviction_requested, std::move(judgement.why), saturating_add(now, judgement.left)};
}

void EvictionRequestBook::processes_unreadable(const Error& error) {
  unreadable_ = Obstacle::of(error);
  processes_known_ = true;
}

void EvictionRequestBook::request_changed(const std::string& uid, const k8s::EvictionRequest* request) {
  if (request == nullptr)
    requests_.erase(uid);
  else
    requests_.insert_or_assign(uid, *request);
}

void EvictionRequestBook::process_changed(const std::string& uid, const k8s::EvictionProcess* process) {
  if (process == nullptr)
    processes_.erase(uid);
  else
    processes_.insert_or_assign(uid, *process);
}

// A pod that need not leave now waits anew when its turn comes again.
void EvictionRequestBook::forget_turns(const std::map<std::string, TrackedPod>& pods, Node node) {
  for (auto& [uid, state] : states_) {
    const auto pod = pods.find(uid);
    if (node != Node::schedulable && (pod == pods.end() || is_to_go(pod->second))) continue;
    state.wanted = false;
    state.silent_since.reset();
    state.sign.reset();
  }
}

std::vector<EvictionRequestBook::Step> EvictionRequestBook::take_steps(const std::map<std::string, TrackedPod>& pods,
                                                                       const std::string& node_uid, Node node,
                                                                       std::size_t most, TimePoint now) {
  std::vector<Step> steps;
  if (!is_on()) return steps;
  forget_turns(pods, node);
  if (!known_) return steps;
  const auto take = [&](Step::Kind kind, State& state, k8s::EvictionRequest request) {
    state.request_out = true;
    state.asks_out = kind != Step::Kind::withdraw;
    state.sent |= state.asks_out;
    std::string pod_uid = request.pod_uid;
    steps.push_back({kind, std::move(pod_uid), std::move(request)});
  };
  for (const auto& [uid, request] : requests_) {
    const auto pod = pods.find(request.pod_uid);
    if (!is_open(request) || pod == pods.end() || pod->second.state == PodState::vanished ||
        !names(request, pod->second.pod) || (node != Node::schedulable && is_to_go(pod->second)))
      continue;
    State& state = state_of(request.pod_uid);
    if (steps.size() < most && !state.request_out && state.retry_at <= now) take(Step::Kind::withdraw, state, request);
  }
  if (unusable_ || node != Node::cordoned) return steps;
  for (auto& [uid, state] : states_) {
    const auto pod = pods.find(uid);
    if (steps.size() >= most || !state.wanted || state.request_out || !state.refused.empty() || state.retry_at > now ||
        pod == pods.end() || !is_to_go(pod->second) || pod->second.state == PodState::terminating)
      continue;
    RequestFacts facts = facts_of(pod->second.pod, state);
    facts.silence = now - *state.silent_since;
    switch (judge_request(facts).next) {
      case RequestJudgement::Next::create: {
        k8s::EvictionRequest request;
        request.ns = pod->second.pod.ns;
        request.name = k8s::request_name(uid);
        request.labels = {{std::string(k8s::request_node_label), node_uid}};
        request.pod_name = pod->second.pod.name;
        request.pod_uid = uid;
        request.requester = k8s::eviction_requester;
        request.intent = k8s::intent_eviction;
        take(Step::Kind::create, state, std::move(request));
        break;
      }
      case RequestJudgement::Next::renew: take(Step::Kind::renew, state, *facts.request); break;
      case RequestJudgement::Next::wait:
      case RequestJudgement::Next::evict: break;
    }
  }
  return steps;
}

void EvictionRequestBook::answered(const Step& step, const Result<k8s::EvictionRequest>& answer, TimePoint now) {
  State& state = state_of(step.pod_uid);
  state.request_out = false;
  if (answer) {
    state.refusals = 0;
    if (state.asks_out) state.answer_lost = false;
    if (step.kind != Step::Kind::create) ++state.flips;
    const bool as_asked = answer->wants_eviction() == state.asks_out;
    const bool pauses = !as_asked || state.flips >= flips_that_count;
    if (!pauses) state.retry.reset();
    state.retry_at = pauses ? now + state.retry.next(rng_) : TimePoint{};
    if (answer->is_ours() && answer->pod_uid == step.pod_uid)
      requests_.insert_or_assign(answer->uid, *answer);
    else
      state.refused =
          fmt::format("the EvictionRequest {} exists already, and another requester owns it", answer->key());
    return;
  }
  const Error& error = answer.error();
  state.answer_lost |= state.asks_out && k8s::is_transient(error);
  state.retry_at = now + state.retry.next(rng_, error.retry_after);
  if (k8s::is_conflict(error) || k8s::may_heal(error)) return;
  if (++state.refusals < refusals_that_count) return;
  if (k8s::is_denied_by_rbac(error))
    not_usable(error);
  else if (step.kind != Step::Kind::withdraw)
    state.refused = "its EvictionRequest was refused: " + error.message();
}

std::size_t EvictionRequestBook::requests_out() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(states_, [](const auto& entry) { return entry.second.request_out; }));
}

bool EvictionRequestBook::may_have_requested(const std::map<std::string, TrackedPod>& pods) const {
  return std::ranges::any_of(states_,
                             [&](const auto& entry) { return entry.second.sent && is_there(pods, entry.first); }) ||
         std::ranges::any_of(requests_, [&](const auto& entry) {
           return is_open(entry.second) && is_there(pods, entry.second.pod_uid);
         });
}

Asked EvictionRequestBook::asked(const std::map<std::string, TrackedPod>& pods) const {
  Asked asked;
  for (const auto& [uid, state] : states_) {
    asked.seen |= state.sent;
    asked.unanswered |= is_there(pods, uid) && ((state.request_out && state.asks_out) || state.answer_lost);
  }
  asked.seen |= std::ranges::any_of(requests_, [](const auto& entry) { return entry.second.is_ours(); });
  return asked;
}

TimePoint EvictionRequestBook::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  if (!is_on()) return next;
  for (const auto& [uid, state] : states_)
    if (!state.request_out && state.retry_at > now) next = std::min(next, state.retry_at);
  return next;
}

void EvictionRequestBook::diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts) const {
  if (!is_on()) return;
  using Kind = Obstacle::Kind;
  const auto add = [&](const char* code, std::string subject, std::string message, bool holds = true) {
    Scope scope;
    scope.holds = holds;
    facts.push_back({code, std::move(subject), std::move(message), {}, std::move(scope)});
  };
  constexpr std::string_view how_to_serve =
      "turn on the feature gate EvictionRequestAPI and the API lifecycle.k8s.io/v1alpha1 of the API server, or turn "
      "off --eviction-requests";
  if (unusable_) {
    const std::string what = "pods that have responders are evicted without an EvictionRequest: " +
                             (unusable_->kind == Kind::unserved
                                  ? "the API server does not serve EvictionRequests (lifecycle.k8s.io/v1alpha1)"
                                  : unusable_->why);
    if (unusable_->kind == Kind::right_missing)
      add(reason::right_missing, "evictionrequests",
          what +
              "; grant verbs list, watch, create and patch on resource evictionrequests (API group "
              "\"lifecycle.k8s.io\")");
    else if (unusable_->kind == Kind::unserved)
      add(reason::eviction_requests_unserved, "evictionrequests", fmt::format("{}; {}", what, how_to_serve), false);
    else
      add(reason::eviction_request_failed, "evictionrequests", what, false);
  }
  if (unreadable_ && !unusable_) {
    const std::string what = "the drain cannot see whether responders answer: " + unreadable_->why;
    const std::string subject = "evictions of lifecycle.k8s.io";
    if (unreadable_->kind == Kind::right_missing)
      add(reason::right_missing, subject,
          what + "; grant verbs list and watch on resource evictions (API group \"lifecycle.k8s.io\")");
    else if (unreadable_->kind == Kind::unserved)
      add(reason::eviction_requests_unserved, subject, fmt::format("{}; {}", what, how_to_serve), false);
    else
      add(reason::eviction_request_failed, subject, what, false);
  }
  for (const TrackedPod* tracked : leaving) {
    const auto found = states_.find(tracked->pod.uid);
    if (found == states_.end() || found->second.why.empty() || tracked->state == PodState::terminating) continue;
    Scope scope = about(std::array<const TrackedPod*, 1>{tracked});
    scope.holds = false;
    facts.push_back({reason::eviction_request_failed,
                     "pod " + tracked->pod.key(),
                     found->second.why + ", so the drain evicts the pod as without a request",
                     {},
                     std::move(scope)});
  }
}

}  // namespace haulout::drain
