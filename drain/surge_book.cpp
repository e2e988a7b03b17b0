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
// The watch shows what a patch has changed within this time.
constexpr Duration news_take = seconds(30);
// One 403 proves nothing, because an authorizer that has just started may refuse wrongly.
constexpr unsigned refusals_that_count = 2;

// Returns the value of "25%" or "2" for this number of replicas; nullopt if the text is neither. Percentages are
// rounded up, as the Deployment controller rounds maxSurge.
std::optional<std::size_t> resolved(std::string_view text, std::int32_t replicas) {
  const bool percent = text.ends_with('%');
  const auto value = parse_number<std::uint32_t>(percent ? text.substr(0, text.size() - 1) : text);
  if (!value) return std::nullopt;
  const std::uint64_t all = static_cast<std::uint64_t>(std::max(0, replicas));
  return percent ? static_cast<std::size_t>((all * *value + 99) / 100) : static_cast<std::size_t>(*value);
}

Scope about_pod(const TrackedPod& tracked) {
  return about(std::array<const TrackedPod*, 1>{&tracked});
}

// Returns true if the pod may still be surged: it waits to be evicted, and nothing but a guard or a budget holds it.
bool may_begin_with(const TrackedPod& tracked) {
  if (tracked.decision.verdict != Verdict::evict || tracked.decision.last || tracked.request_out) return false;
  if (tracked.state == PodState::queued) return true;
  return tracked.state == PodState::parked &&
         (tracked.hold == TrackedPod::Hold::none || tracked.hold == TrackedPod::Hold::guard);
}

std::optional<std::string> annotation_of(const std::map<std::string, std::string>& annotations) {
  auto value = k8s::value_at(annotations, surge_annotation);
  return value && (*value == "true" || *value == "false") ? value : std::nullopt;
}

std::string_view words_of(SurgeBook::Step::Kind kind) {
  switch (kind) {
    case SurgeBook::Step::Kind::surge: return "the label pod-template-hash could not be taken off the pod";
    case SurgeBook::Step::Kind::relabel: return "the label pod-template-hash of the pod could not be restored";
    case SurgeBook::Step::Kind::unmark: break;
  }
  return "the annotation haulout.dev/surged could not be removed from the pod";
}

}  // namespace

std::string surge_obstacle(const Controller& controller) {
  if (controller.kind != "Deployment" || !controller.rollout)
    return fmt::format("{} is no Deployment, and only pods of Deployments can be replaced in advance",
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

std::string surge_obstacle(const k8s::Pod& pod, const Controller& controller) {
  if (auto obstacle = surge_obstacle(controller); !obstacle.empty()) return obstacle;
  if (!pod.labels.contains(std::string(k8s::template_hash_label)))
    return fmt::format("pods of {} have no label {}", controller.text(), k8s::template_hash_label);
  if (pod.host_ports) return fmt::format("pods of {} use ports of the node", controller.text());
  return {};
}

std::size_t surge_places(const Controller& deployment) {
  const std::int32_t replicas = deployment.replicas.value_or(1);
  return std::max<std::size_t>(1,
                               deployment.rollout ? resolved(deployment.rollout->max_surge, replicas).value_or(1) : 1);
}

const std::string* SurgeFacts::annotation_of(const std::string& ns) {
  const auto known = namespaces_.find(ns);
  if (known != namespaces_.end()) return &known->second;
  questions_.try_emplace(Question{ns, {}});
  return nullptr;
}

const std::string* SurgeFacts::obstacle_of(const Question& claim) {
  const auto known = claims_.find(claim);
  if (known != claims_.end()) return &known->second;
  questions_.try_emplace(claim);
  return nullptr;
}

std::optional<SurgeFacts::Question> SurgeFacts::next_question(TimePoint now) const {
  for (const auto& [question, open] : questions_)
    if (open.not_before <= now) return question;
  return std::nullopt;
}

void SurgeFacts::namespace_known(const std::string& ns, std::string annotation) {
  namespaces_[ns] = std::move(annotation);
  questions_.erase(Question{ns, {}});
}

void SurgeFacts::claim_known(const Question& claim, std::string obstacle) {
  claims_[claim] = std::move(obstacle);
  questions_.erase(claim);
}

void SurgeFacts::not_answered(const Question& question, const Error& error, TimePoint now) {
  Open& open = questions_[question];
  open.not_before = now + question_pause;
  const bool refused = k8s::is_forbidden(error) ? ++open.refusals >= refusals_that_count : !k8s::may_heal(error);
  if (!refused) return;
  const bool of_namespace = question.claim.empty();
  if (k8s::is_forbidden(error)) rights_[of_namespace ? "namespaces" : "persistentvolumeclaims"] = error.message();
  // An owner may have forbidden to surge these pods, so a namespace that may not be read counts as one that does.
  if (of_namespace) return namespace_known(question.ns, "false");
  claim_known(question,
              fmt::format("its PersistentVolumeClaim {} could not be read: {}", question.claim, error.message()));
}

TimePoint SurgeFacts::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [question, open] : questions_)
    if (open.not_before > now) next = std::min(next, open.not_before);
  return next;
}

SurgeBook::Judgement SurgeBook::judge_claims(const k8s::Pod& pod) {
  for (const std::string& claim : pod.claims) {
    // The claim of a generic ephemeral volume is the pod's own: its replacement gets another.
    if (std::find(pod.own_claims.begin(), pod.own_claims.end(), claim) != pod.own_claims.end()) continue;
    const std::string* obstacle = facts_.obstacle_of({pod.ns, claim});
    if (!obstacle) return {Plan::unknown, fmt::format("its PersistentVolumeClaim {} has been read", claim)};
    if (!obstacle->empty()) return {Plan::impossible, *obstacle};
  }
  return {Plan::surge};
}

SurgeBook::Judgement SurgeBook::judge(const k8s::Pod& pod, const ControllerGroup& group) {
  const Controller& controller = group.controller;
  // Evicting a pod that is not Ready takes no Ready pod away. Nothing replaces the pods of a controller that is gone.
  if (!pod.ready || controller.gone) return {};
  auto annotation = annotation_of(pod.annotations);
  if (!annotation) {
    const std::string* known = facts_.annotation_of(pod.ns);
    if (!known) return {Plan::unknown, fmt::format("namespace {} has been read", pod.ns)};
    annotation = *known;
  }
  if (*annotation == "false") return {};
  const Surge mode = options_.guards.surge;
  const bool wanted = *annotation == "true" || mode == Surge::all ||
                      (mode == Surge::single_replica && controller.replicas == 1) ||
                      (mode == Surge::closed_budget && budget_closed_(pod));
  if (!wanted) return {};
  if (auto obstacle = surge_obstacle(pod, controller); !obstacle.empty()) return {Plan::impossible, std::move(obstacle)};
  return judge_claims(pod);
}

bool SurgeBook::covers(const k8s::Pod& pod) {
  if (!is_on()) return false;
  if (pod.surged()) return true;
  if (!is_guarded(pod)) return false;
  const ControllerGroup* group = controllers_.group_of(pod);
  return group && judge(pod, *group).plan == Plan::surge;
}

std::int64_t SurgeBook::others_ready(const ControllerGroup& group, const k8s::Pod& pod) const {
  const ControlledPod* member = controllers_.find(pod);
  const bool counted = member && member->seen && member->ready && !member->terminating && !member->leaving;
  return static_cast<std::int64_t>(controllers_.tally_of(group).ready) - (counted ? 1 : 0);
}

std::int64_t SurgeBook::needed(const ControllerGroup& group, const k8s::Pod& pod) const {
  const auto attempt = attempts_.find(pod.uid);
  const std::int64_t seen = attempt == attempts_.end() ? 0 : attempt->second.most_ready;
  const std::int64_t before = std::max({std::int64_t{1}, pod.surge_mark->ready, seen});
  const auto& replicas = group.controller.replicas;
  return replicas ? std::min<std::int64_t>(before, std::max(0, *replicas)) : before;
}

bool SurgeBook::is_replaced(const ControllerGroup& group, const k8s::Pod& pod) const {
  return !pod.ready || group.controller.gone || others_ready(group, pod) >= needed(group, pod);
}

std::string SurgeBook::why_not_replaced(const ControllerGroup& group) const {
  if (const ControlledPod* homeless = controllers_.tally_of(group).homeless_of_all)
    return fmt::format("pod {} cannot be scheduled: {}", homeless->key, *homeless->unschedulable);
  return {};
}

std::optional<EvictionGuard::Hold> SurgeBook::held_with_mark(const k8s::Pod& pod, const Attempt& attempt,
                                                             TimePoint now) {
  ControllerGroup* group = controllers_.group_of(pod);
  if (is_on() && !group)
    return Hold{reason::controller_unknown,
                fmt::format("waiting until its {} {} has been read", pod.controller->kind, pod.controller->name)};
  if (group && is_replaced(*group, pod)) return std::nullopt;
  if (group) group->holds = true;
  if (pod.surged() && is_on()) {
    const std::string why = why_not_replaced(*group);
    return Hold{reason::awaiting_replacement,
                fmt::format("waiting until its replacement is Ready (--surge): {} has {} other Ready pods and needs "
                            "{}{}{}",
                            group->controller.text(), others_ready(*group, pod), needed(*group, pod),
                            why.empty() ? "" : "; ", why)};
  }
  // Without surge, the pod is evicted as ever as soon as it is given back, or if that is not possible.
  const bool patient = now < attempt.back_since.value_or(now) + adoption_limit;
  if (!is_on() && (attempt.refused || (pod.given_back() && (pod.owned || !patient)))) return std::nullopt;
  if (is_on() && pod.owned) return std::nullopt;  // `failed` holds it
  return Hold{reason::surge_failed,
              fmt::format("waiting until ReplicaSet {} has adopted the pod again, which a drain has surged",
                          pod.surge_mark->owner),
              attempt.back_since.value_or(now) + adoption_limit};
}

std::optional<EvictionGuard::Hold> SurgeBook::held(const k8s::Pod& pod, TimePoint now) {
  if (is_hurried() || annotation_of(pod.annotations) == "false") return std::nullopt;
  if (!is_on() && !pod.surge_mark) return std::nullopt;
  const auto found = attempts_.find(pod.uid);
  if (pod.surge_mark) {
    auto hold = held_with_mark(pod, found == attempts_.end() ? Attempt() : found->second, now);
    if (hold || pod.surged() || !is_on()) return hold;
  }
  if (found != attempts_.end() && found->second.failed)
    if (const TimePoint until = std::max(found->second.not_before, found->second.retry_at); until > now)
      return Hold{reason::surge_failed, found->second.why, until};
  if (!is_guarded(pod)) return std::nullopt;
  ControllerGroup* group = controllers_.group_of(pod);
  // Without a group, the ControllerGuard lets the pod wait until the controller has been read.
  if (!group) return std::nullopt;
  const Judgement judgement = judge(pod, *group);
  if (judgement.plan == Plan::unknown)
    return Hold{reason::controller_unknown, fmt::format("waiting until {} (--surge)", judgement.why)};
  if (judgement.plan != Plan::surge) return std::nullopt;
  group->holds = true;
  const std::string why = found == attempts_.end() ? std::string() : found->second.why;
  return Hold{reason::awaiting_replacement,
              why.empty() ? fmt::format("waiting for its replacement (--surge): {} replaces at most {} at a time",
                                        group->controller.text(), surge_places(group->controller))
                          : "waiting for its replacement (--surge): " + why};
}

SurgeBook::Attempt& SurgeBook::attempt_of(const k8s::Pod& pod) {
  const auto [found, added] = attempts_.try_emplace(pod.uid);
  if (added) {
    found->second.pause = Backoff(pause_after_failure);
    found->second.retry = Backoff(retry_of_request);
  }
  return found->second;
}

bool SurgeBook::is_under_way(const k8s::Pod& pod, Step::Kind kind, TimePoint now) const {
  const auto found = attempts_.find(pod.uid);
  if (found == attempts_.end()) return false;
  const Attempt& attempt = found->second;
  return attempt.request_out ||
         (attempt.done == kind && attempt.done_for == pod.resource_version && now < attempt.done_until);
}

std::optional<SurgeBook::Step> SurgeBook::step_back(const k8s::Pod& pod, TimePoint now) {
  Attempt& attempt = attempt_of(pod);
  const ControllerGroup* group = controllers_.group_of(pod);
  // The watch shows what the step has changed.
  if (attempt.done == (pod.given_back() ? Step::Kind::relabel : Step::Kind::surge)) attempt.done.reset();
  if (pod.given_back()) {
    if (!attempt.back_since) {
      attempt.back_since = now;
      attempt.surged_since.reset();
      attempt.failed = true;
      attempt.not_before = now + attempt.pause.next(rng_);
      if (attempt.why.empty()) attempt.why = "the pod was given back to its ReplicaSet; the drain tries it again later";
    }
    if (!pod.owned || is_under_way(pod, Step::Kind::unmark, now) || attempt.retry_at > now) return std::nullopt;
    attempt.request_out = true;
    return Step{Step::Kind::unmark, pod};
  }
  attempt.back_since.reset();
  if (!attempt.surged_since) {
    attempt.surged_since = now;
    attempt.failed = false;
    attempt.not_before = {};
  }
  if (group) attempt.most_ready = std::max(attempt.most_ready, others_ready(*group, pod) + (pod.ready ? 1 : 0));
  const Duration limit = is_on() ? options_.guards.surge_limit : Duration::zero();
  const TimePoint due = std::max(saturating_add(*attempt.surged_since, limit), attempt.retry_at);
  if (is_under_way(pod, Step::Kind::relabel, now) || now < due || (is_on() && !group) ||
      (group && is_replaced(*group, pod)))
    return std::nullopt;
  const std::string known = group ? why_not_replaced(*group) : std::string();
  attempt.why = !is_on() ? std::string()
                         : fmt::format(
                               "no replacement was Ready within {} s, so the pod was given back to its "
                               "ReplicaSet; the drain tries it again later{}{}",
                               std::chrono::ceil<seconds>(limit).count(), known.empty() ? "" : ": ", known);
  attempt.request_out = true;
  return Step{Step::Kind::relabel, pod};
}

bool SurgeBook::may_surge(const TrackedPod& tracked, const ControllerGroup& group, TimePoint now) {
  const k8s::Pod& pod = tracked.pod;
  if (!may_begin_with(tracked) || !is_guarded(pod) || !controllers_.sees(pod.ns)) return false;
  // A ReplicaSet that is not known yet may have Ready pods of this Deployment.
  if (controllers_.questions().may_be_of(group.controller)) return false;
  const auto attempt = attempts_.find(pod.uid);
  if (attempt != attempts_.end() && std::max(attempt->second.not_before, attempt->second.retry_at) > now) return false;
  return !is_under_way(pod, Step::Kind::surge, now) && judge(pod, group).plan == Plan::surge;
}

std::vector<SurgeBook::Step> SurgeBook::take_steps(const std::vector<TrackedPod*>& leaving, std::size_t may_begin,
                                                   TimePoint now) {
  std::vector<Step> steps;
  if (is_hurried()) return steps;
  std::map<const ControllerGroup*, std::size_t> under_way;
  std::vector<const TrackedPod*> candidates;
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (!pod.controller || pod.finished() || pod.terminating() || tracked->state == PodState::terminating) continue;
    const ControllerGroup* group = controllers_.group_of(pod);
    if (group && (pod.surged() || is_under_way(pod, Step::Kind::surge, now))) ++under_way[group];
    if (!pod.surge_mark) {
      if (group && is_on()) candidates.push_back(tracked);
      continue;
    }
    if (tracked->state == PodState::in_flight) continue;
    if (auto step = step_back(pod, now)) steps.push_back(*std::move(step));
  }
  for (const TrackedPod* tracked : candidates) {
    if (may_begin == 0) break;
    const k8s::Pod& pod = tracked->pod;
    const ControllerGroup& group = *controllers_.group_of(pod);
    if (under_way[&group] >= surge_places(group.controller) || !may_surge(*tracked, group, now)) continue;
    ++under_way[&group];
    --may_begin;
    Attempt& attempt = attempt_of(pod);
    attempt.request_out = attempt.sent = true;
    attempt.most_ready = others_ready(group, pod) + 1;
    attempt.surged_since.reset();
    attempt.back_since.reset();
    steps.push_back({Step::Kind::surge, pod, attempt.most_ready});
  }
  return steps;
}

std::optional<SurgeBook::Step> SurgeBook::answered(const Step& step, const Result<k8s::Pod>& answer, TimePoint now) {
  Attempt& attempt = attempt_of(step.pod);
  attempt.request_out = false;
  attempt.answer_lost = !answer && k8s::is_transient(answer.error());
  if (answer || k8s::is_conflict(answer.error())) {
    attempt.done = step.kind;
    attempt.done_for = step.pod.resource_version;
    attempt.done_until = now + news_take;
  }
  if (answer) {
    attempt.retry.reset();
    attempt.retry_at = {};
    attempt.right_missing = attempt.refused = false;
    if (step.kind != Step::Kind::surge) return std::nullopt;
    attempt.why.clear();
    attempt.not_before = {};
    if (answer->surged()) return std::nullopt;
    // An admission webhook has changed what was written, perhaps to what it was before.
    attempt.done.reset();
    const bool has_label = answer->labels.contains(std::string(k8s::template_hash_label));
    attempt.failed = true;
    attempt.not_before = now + attempt.pause.next(rng_);
    attempt.why =
        fmt::format("an admission webhook {}, so the pod cannot be replaced in advance",
                    has_label ? "restores the label pod-template-hash" : "removes the annotation haulout.dev/surged");
    if (has_label) return std::nullopt;
    Step undo{Step::Kind::relabel, *answer};
    undo.pod.surge_mark = k8s::SurgeMark{};
    undo.pod.surge_mark->hash = k8s::value_at(step.pod.labels, k8s::template_hash_label).value_or("");
    attempt.request_out = true;
    return undo;
  }
  const Error& error = answer.error();
  const bool passes = k8s::is_conflict(error) || k8s::is_gone(error) || k8s::may_heal(error);
  attempt.right_missing = k8s::is_denied_by_rbac(error);
  attempt.refused = !passes;
  attempt.failed = attempt.failed || (step.kind == Step::Kind::surge && !passes);
  attempt.why = fmt::format("{}: {}", words_of(step.kind), error.message());
  attempt.retry_at = now + attempt.retry.next(rng_, error.retry_after);
  return std::nullopt;
}

bool SurgeBook::may_have_surged() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const auto& entry) { return entry.second.sent || entry.second.surged_since; });
}

bool SurgeBook::any_unanswered() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const auto& entry) { return entry.second.request_out || entry.second.answer_lost; });
}

std::size_t SurgeBook::requests_out() const {
  return static_cast<std::size_t>(
      std::count_if(attempts_.begin(), attempts_.end(), [](const auto& entry) { return entry.second.request_out; }));
}

TimePoint SurgeBook::next_due(TimePoint now) const {
  TimePoint next = facts_.next_due(now);
  const auto consider = [&](TimePoint at) {
    if (at > now) next = std::min(next, at);
  };
  for (const auto& [uid, attempt] : attempts_) {
    consider(attempt.not_before);
    consider(attempt.retry_at);
    if (attempt.done) consider(attempt.done_until);
    if (attempt.surged_since && is_on()) consider(saturating_add(*attempt.surged_since, options_.guards.surge_limit));
    if (attempt.back_since) consider(*attempt.back_since + adoption_limit);
  }
  return next;
}

void SurgeBook::diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts) {
  if (is_hurried()) return;
  for (const auto& [resource, why] : facts_.missing_rights())
    facts.push_back({reason::right_missing,
                     resource + " (--surge)",
                     fmt::format("pods whose {} cannot be read are not replaced in advance: {}; grant verb get on "
                                 "resource {} (API group \"\")",
                                 resource, why, resource),
                     {}});
  std::map<std::string, std::vector<const TrackedPod*>> impossible;  // by the obstacle, which names the controller
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (tracked->state == PodState::terminating || !is_guarded(pod)) continue;
    const auto found = attempts_.find(pod.uid);
    if (found != attempts_.end() && (found->second.failed || found->second.refused) && !found->second.why.empty()) {
      const bool right = found->second.right_missing;
      facts.push_back({right ? reason::right_missing : reason::surge_failed,
                       "pod " + pod.key(),
                       found->second.why + (right ? "; grant verb patch on resource pods (API group \"\")" : ""),
                       {},
                       about_pod(*tracked)});
    }
    const ControllerGroup* group = controllers_.group_of(pod);
    if (!is_on() || !group || pod.surge_mark || tracked->decision.verdict != Verdict::evict) continue;
    if (const Judgement judgement = judge(pod, *group); judgement.plan == Plan::impossible)
      impossible[judgement.why].push_back(tracked);
  }
  for (const auto& [why, pods] : impossible) {
    Scope scope = about(pods);
    scope.holds = false;
    const Controller& controller = controllers_.group_of(pods.front()->pod)->controller;
    facts.push_back({reason::surge_impossible,
                     controller.text(),
                     "its pods are evicted without a replacement in advance: " + why,
                     {},
                     std::move(scope)});
  }
}

}  // namespace haulout::drain
