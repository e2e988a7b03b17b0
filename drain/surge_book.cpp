#include "drain/surge_book.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"
#include "k8s/surge_mark.hpp"

namespace haulout::drain {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr BackoffOptions pause_after_failure{minutes(5), 2.0, std::chrono::hours(1), BackoffOptions::Jitter::equal};
constexpr BackoffOptions retry_of_request{seconds(1), 2.0, minutes(1), BackoffOptions::Jitter::equal};
// How long a question whose request failed waits.
constexpr Duration question_pause = seconds(5);

// Returns the value of "25%" or "2" for this number of replicas; nullopt if the text is neither. Percentages are
// rounded up, as the Deployment controller rounds maxSurge.
std::optional<std::size_t> resolved(std::string_view text, std::int32_t replicas) {
  const bool percent = text.ends_with('%');
  const auto value = parse_number<std::uint32_t>(percent ? text.substr(0, text.size() - 1) : text);
  if (!value) return std::nullopt;
  const std::uint64_t all = static_cast<std::uint64_t>(std::max(0, replicas));
  return percent ? static_cast<std::size_t>((all * *value + 99) / 100) : static_cast<std::size_t>(*value);
}

Scope about_pod(const TrackedPod& tracked, bool holds) {
  Scope scope = about(std::array<const TrackedPod*, 1>{&tracked});
  scope.holds = holds;
  return scope;
}

// Returns true if the pod may still be surged: it waits to be evicted, and nothing but a guard or a budget holds it.
bool may_begin(const TrackedPod& tracked) {
  if (tracked.decision.verdict != Verdict::evict || tracked.request_out) return false;
  if (tracked.state == PodState::queued) return true;
  return tracked.state == PodState::parked &&
         (tracked.hold == TrackedPod::Hold::none || tracked.hold == TrackedPod::Hold::guard);
}

std::optional<std::string> own_annotation(const k8s::Pod& pod) {
  return k8s::value_at(pod.annotations, surge_annotation);
}

}  // namespace

std::string surge_obstacle(const Controller& controller) {
  if (controller.kind != "Deployment" || !controller.rollout)
    return fmt::format("{} is no Deployment, and only a Deployment's pods can be replaced in advance",
                       controller.text());
  const k8s::Rollout& rollout = *controller.rollout;
  if (rollout.strategy != "RollingUpdate")
    return fmt::format("the strategy of {} is {}, so it never runs an additional pod", controller.text(),
                       rollout.strategy);
  // Of 100 replicas every percentage is at least one pod.
  if (resolved(rollout.max_surge, 100) == 0)
    return fmt::format("maxSurge of {} is 0, so it never runs an additional pod", controller.text());
  if (rollout.replacement_policy == "TerminationComplete")
    return fmt::format("podReplacementPolicy of {} is TerminationComplete, so it never runs an additional pod",
                       controller.text());
  return {};
}

std::size_t surge_places(const Controller& deployment) {
  const std::int32_t replicas = deployment.replicas.value_or(1);
  return std::max<std::size_t>(1,
                               deployment.rollout ? resolved(deployment.rollout->max_surge, replicas).value_or(1) : 1);
}

namespace {

std::string obstacle_of(const k8s::Pod& pod, const Controller& controller) {
  if (auto obstacle = surge_obstacle(controller); !obstacle.empty()) return obstacle;
  if (!pod.labels.contains(std::string(k8s::template_hash_label)))
    return fmt::format("the pod has no label {}", k8s::template_hash_label);
  if (pod.host_ports) return "the pod uses ports of the node";
  return {};
}

}  // namespace

SurgeBook::Judgement SurgeBook::judge_claims(const k8s::Pod& pod) {
  for (const std::string& claim : pod.claims) {
    // The claim of a generic ephemeral volume is the pod's own: its replacement gets another.
    if (std::find(pod.own_claims.begin(), pod.own_claims.end(), claim) != pod.own_claims.end()) continue;
    const Question question{pod.ns, claim};
    const auto known = claims_.find(question);
    if (known == claims_.end()) {
      questions_.try_emplace(question);
      return {Plan::unknown, fmt::format("its PersistentVolumeClaim {} has been read", claim)};
    }
    if (!known->second.empty()) return {Plan::impossible, known->second};
  }
  return {Plan::surge};
}

SurgeBook::Judgement SurgeBook::judge(const k8s::Pod& pod, const ControllerGroup& group) {
  const Controller& controller = group.controller;
  // Evicting a pod that is not Ready takes no Ready pod away. Nothing replaces the pods of a controller that is gone.
  if (!pod.ready || controller.gone) return {};
  auto annotation = own_annotation(pod);
  if (!annotation) {
    const auto known = namespaces_.find(pod.ns);
    if (known == namespaces_.end()) {
      questions_.try_emplace(Question{pod.ns, {}});
      return {Plan::unknown, fmt::format("namespace {} has been read", pod.ns)};
    }
    annotation = known->second;
  }
  if (*annotation == "false") return {};
  const bool wanted = *annotation == "true" || guards_.surge == Surge::all ||
                      (guards_.surge == Surge::single_replica && controller.replicas == 1) ||
                      (guards_.surge == Surge::closed_budget && budget_closed_(pod));
  if (!wanted) return {};
  if (auto obstacle = obstacle_of(pod, controller); !obstacle.empty()) return {Plan::impossible, std::move(obstacle)};
  return judge_claims(pod);
}

std::int64_t SurgeBook::others_ready(const ControllerGroup& group, const k8s::Pod& pod) const {
  const ControlledPod* member = controllers_.find(pod);
  const bool counted = member && member->seen && member->ready && !member->terminating && !member->leaving;
  return static_cast<std::int64_t>(controllers_.tally_of(group).ready) - (counted ? 1 : 0);
}

std::int64_t SurgeBook::needed(const ControllerGroup& group, const k8s::Pod& pod) {
  const std::int64_t before = std::max<std::int64_t>(1, pod.surge_mark->ready);
  return std::min<std::int64_t>(before, group.controller.replicas.value_or(1));
}

bool SurgeBook::is_replaced(const ControllerGroup& group, const k8s::Pod& pod) const {
  return !pod.ready || group.controller.gone || others_ready(group, pod) >= needed(group, pod);
}

std::string SurgeBook::why_not_replaced(const ControllerGroup& group) const {
  if (const ControlledPod* homeless = controllers_.tally_of(group).homeless_of_all)
    return fmt::format("pod {} cannot be scheduled: {}", homeless->key, *homeless->unschedulable);
  return "look at the newest pods and at the Events of its ReplicaSet";
}

std::optional<EvictionGuard::Hold> SurgeBook::held(const k8s::Pod& pod, TimePoint now) {
  if (!is_on()) return std::nullopt;
  const auto found = attempts_.find(pod.uid);
  const Attempt* attempt = found == attempts_.end() ? nullptr : &found->second;
  if (pod.surged()) {
    ControllerGroup* group = pod.controller ? controllers_.group_of(pod) : nullptr;
    if (!group || is_replaced(*group, pod)) return std::nullopt;
    group->holds = true;
    return Hold{reason::awaiting_replacement,
                fmt::format("waiting until its replacement is Ready (--surge): {} has {} other Ready pods and needs {}",
                            group->controller.text(), others_ready(*group, pod), needed(*group, pod))};
  }
  // A pod that was given back may have no controller for a moment, until its ReplicaSet adopts it.
  if (attempt && (attempt->failed || attempt->forbidden) && attempt->not_before > now)
    return Hold{reason::surge_failed, attempt->why, attempt->not_before};
  if (!is_guarded(pod)) return std::nullopt;
  ControllerGroup* group = controllers_.group_of(pod);
  // Without a group, the ControllerGuard lets the pod wait until the controller has been read.
  if (!group) return std::nullopt;
  const Judgement judgement = judge(pod, *group);
  if (judgement.plan == Plan::unknown)
    return Hold{reason::controller_unknown, fmt::format("waiting until {} (--surge)", judgement.why)};
  if (judgement.plan != Plan::surge) return std::nullopt;
  group->holds = true;
  return Hold{reason::awaiting_replacement,
              fmt::format("waiting for its replacement (--surge): {} replaces at most {} at the same time",
                          group->controller.text(), surge_places(group->controller))};
}

std::optional<SurgeBook::Question> SurgeBook::next_question(TimePoint now) const {
  for (const auto& [question, not_before] : questions_)
    if (not_before <= now) return question;
  return std::nullopt;
}

void SurgeBook::namespace_known(const std::string& ns, std::string annotation) {
  namespaces_[ns] = std::move(annotation);
  questions_.erase(Question{ns, {}});
}

void SurgeBook::claim_known(const Question& claim, std::string obstacle) {
  claims_[claim] = std::move(obstacle);
  questions_.erase(claim);
}

void SurgeBook::not_answered(const Question& question, TimePoint now) {
  questions_[question] = now + question_pause;
}

SurgeBook::Attempt& SurgeBook::attempt_of(const k8s::Pod& pod) {
  return attempts_
      .try_emplace(pod.uid, Attempt{.pause = Backoff(pause_after_failure), .retry = Backoff(retry_of_request)})
      .first->second;
}

std::optional<SurgeBook::Step> SurgeBook::step_of_surged(const ControllerGroup& group, const k8s::Pod& pod,
                                                         TimePoint now) {
  Attempt& attempt = attempt_of(pod);
  attempt.failed = false;
  if (!attempt.surged_since) attempt.surged_since = now;
  const TimePoint limit = saturating_add(*attempt.surged_since, guards_.surge_limit);
  if (attempt.request_out || now < std::max(limit, attempt.not_before) || is_replaced(group, pod)) return std::nullopt;
  attempt.why = fmt::format(
      "no replacement was Ready within {} s, so the pod was given back to its ReplicaSet; the drain tries it again "
      "later: {}",
      std::chrono::ceil<seconds>(guards_.surge_limit).count(), why_not_replaced(group));
  attempt.request_out = true;
  return Step{Step::Kind::give_back, pod};
}

std::vector<SurgeBook::Step> SurgeBook::take_steps(const std::vector<TrackedPod*>& leaving, TimePoint now) {
  std::vector<Step> steps;
  std::map<const ControllerGroup*, std::size_t> under_way;
  std::vector<const TrackedPod*> candidates;
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (!pod.controller || pod.terminating() || tracked->state == PodState::terminating) continue;
    const ControllerGroup* group = controllers_.group_of(pod);
    if (!group) continue;
    if (!pod.surged()) {
      candidates.push_back(tracked);
      const auto found = attempts_.find(pod.uid);
      if (found != attempts_.end() && found->second.request_out) ++under_way[group];
      continue;
    }
    ++under_way[group];
    if (tracked->state == PodState::in_flight) continue;
    if (auto step = step_of_surged(*group, pod, now)) steps.push_back(*std::move(step));
  }
  for (const TrackedPod* tracked : candidates) {
    const k8s::Pod& pod = tracked->pod;
    if (!may_begin(*tracked) || !is_guarded(pod)) continue;
    const ControllerGroup& group = *controllers_.group_of(pod);
    if (!controllers_.sees(pod.ns) || judge(pod, group).plan != Plan::surge) continue;
    if (under_way[&group] >= surge_places(group.controller)) continue;
    Attempt& attempt = attempt_of(pod);
    if (attempt.request_out || attempt.not_before > now) continue;
    ++under_way[&group];
    attempt.request_out = true;
    attempt.surged_since.reset();
    steps.push_back({Step::Kind::surge, pod, others_ready(group, pod) + 1});
  }
  return steps;
}

void SurgeBook::answered(const Step& step, const Result<>& answer, TimePoint now) {
  Attempt& attempt = attempt_of(step.pod);
  attempt.request_out = false;
  attempt.answer_lost = !answer && k8s::is_transient(answer.error());
  if (answer) {
    attempt.retry.reset();
    attempt.forbidden = false;
    attempt.failed = step.kind == Step::Kind::give_back;
    attempt.not_before = attempt.failed ? now + attempt.pause.next(rng_) : TimePoint{};
    if (attempt.failed) attempt.surged_since.reset();
    return;
  }
  const Error& error = answer.error();
  attempt.forbidden = k8s::is_forbidden(error);
  const bool passes = k8s::is_conflict(error) || k8s::is_gone(error) || k8s::may_heal(error);
  attempt.failed = step.kind == Step::Kind::surge && !passes;
  if (attempt.failed || attempt.forbidden)
    attempt.why = fmt::format("the label {} of the pod could not be {}: {}", k8s::template_hash_label,
                              step.kind == Step::Kind::surge ? "taken off" : "given back", error.message());
  attempt.not_before = now + attempt.retry.next(rng_, error.retry_after);
}

bool SurgeBook::any_unanswered() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const auto& entry) { return entry.second.request_out || entry.second.answer_lost; });
}

TimePoint SurgeBook::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  const auto consider = [&](TimePoint at) {
    if (at > now) next = std::min(next, at);
  };
  for (const auto& [question, not_before] : questions_) consider(not_before);
  for (const auto& [uid, attempt] : attempts_) {
    consider(attempt.not_before);
    if (attempt.surged_since) consider(saturating_add(*attempt.surged_since, guards_.surge_limit));
  }
  return next;
}

void SurgeBook::diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts) {
  if (!is_on()) return;
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (tracked->state == PodState::terminating || !is_guarded(pod)) continue;
    const auto found = attempts_.find(pod.uid);
    if (found != attempts_.end() && found->second.forbidden)
      facts.push_back({reason::right_missing,
                       "pod " + pod.key(),
                       found->second.why + "; grant verb patch on resource pods (API group \"\")",
                       {},
                       about_pod(*tracked, true)});
    else if (found != attempts_.end() && found->second.failed)
      facts.push_back({reason::surge_failed, "pod " + pod.key(), found->second.why, {}, about_pod(*tracked, true)});
    const ControllerGroup* group = controllers_.group_of(pod);
    if (!group || pod.surged()) continue;
    if (const Judgement judgement = judge(pod, *group); judgement.plan == Plan::impossible)
      facts.push_back({reason::surge_impossible,
                       "pod " + pod.key(),
                       "it is evicted without a replacement in advance: " + judgement.why,
                       {},
                       about_pod(*tracked, false)});
  }
}

}  // namespace haulout::drain
