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
// The watch shows what a patch has changed within this time.
constexpr Duration news_take = seconds(30);
// A drain without surge waits so long for the controller of a pod that an earlier drain has surged.
constexpr Duration unseen_patience = seconds(15);
// Within this time before the release, the clocks do not tell whether a pod was created before it or after it.
constexpr Duration clocks_differ = seconds(5);
// A single request that fails is not worth a diagnosis.
constexpr unsigned failures_that_count = 3;

Scope about_pod(const TrackedPod& tracked) {
  return about(std::array<const TrackedPod*, 1>{&tracked});
}

// Returns true if the pod's turn has come, and nothing but a guard or a budget holds it. A pod that waits for others to
// leave first is not parked.
bool may_begin_with(const TrackedPod& tracked) {
  return tracked.decision.verdict == Verdict::evict && !tracked.request_out && tracked.state == PodState::parked &&
         tracked.hold != TrackedPod::Hold::policy && tracked.hold != TrackedPod::Hold::pinned;
}

// The machine goes down, so there is no time for replacements.
bool is_hurried(const Options& options) {
  return !options.policy.waits_for_work;
}

// Returns how many pods of the group other than this one are Ready and stay for now.
std::int64_t others_ready(const ControllerBook& controllers, const ControllerGroup& group, const k8s::Pod& pod) {
  const ControlledPod* member = controllers.find(pod);
  const bool counted = member && member->ready && member->stays();
  return static_cast<std::int64_t>(controllers.tally_of(group).ready) - (counted ? 1 : 0);
}

// Returns true if the pod has an owner and stays.
bool stays_owned(const ControllerBook& controllers, const k8s::Pod& pod) {
  const ControlledPod* member = controllers.find(pod);
  return member && member->stays() && member->owned;
}

// Returns how many other pods of the group have an owner and stay.
std::int64_t others_owned(const ControllerBook& controllers, const ControllerGroup& group, const k8s::Pod& pod) {
  return static_cast<std::int64_t>(controllers.tally_of(group).owned) - (stays_owned(controllers, pod) ? 1 : 0);
}

// Returns why a replacement is not Ready, as far as is known.
std::string why_not_replaced(const ControllerBook& controllers, const ControllerGroup& group) {
  if (const ControlledPod* homeless = controllers.tally_of(group).homeless_of_all)
    return fmt::format("pod {} cannot be scheduled: {}", homeless->key, *homeless->unschedulable);
  return {};
}

std::string key_of(const ControllerGroup& group) {
  return controller_key(group.controller.ns, group.controller.uid);
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

bool SurgeBook::covers(const k8s::Pod& pod) {
  if (!is_on()) return false;
  if (pod.surged()) return true;
  if (!is_guarded(pod)) return false;
  const ControllerGroup* group = controllers_.group_of(pod);
  return group && judge_.judge(pod, *group).plan == SurgeJudge::Plan::surge;
}

std::int64_t SurgeBook::needed(const ControllerGroup& group, const k8s::Pod& pod) const {
  const auto attempt = attempts_.find(pod.uid);
  const std::int64_t seen = attempt == attempts_.end() ? 0 : attempt->second.most_ready;
  const std::int64_t before = std::max({std::int64_t{1}, pod.surge_mark->ready, seen});
  const auto& replicas = group.controller.replicas;
  return replicas ? std::min<std::int64_t>(before, std::max(0, *replicas)) : before;
}

bool SurgeBook::is_replaced(const ControllerGroup& group, const k8s::Pod& pod) const {
  return !pod.ready || group.controller.gone || others_ready(controllers_, group, pod) >= needed(group, pod);
}

bool SurgeBook::is_on() const {
  return options_.guards.surge != Surge::off && !is_hurried(options_);
}

void SurgeBook::leaving(const k8s::Pod& pod, Leaves leaves) {
  // Otherwise the ControllerGuard reports it.
  if (!options_.guards.any()) controllers_.leaving(pod, leaves != Leaves::no);
}

std::optional<EvictionGuard::Hold> SurgeBook::held_with_mark(const k8s::Pod& pod, const Attempt& attempt,
                                                             TimePoint now) {
  ControllerGroup* group = controllers_.group_of(pod);
  if (!group) controllers_.questions().want(question_about(pod));
  if (is_on() && !group)
    return Hold{reason::controller_unknown,
                fmt::format("waiting until its {} {} has been read", pod.controller->kind, pod.controller->name)};
  if (group && is_replaced(*group, pod)) return std::nullopt;
  if (group) group->holds = true;
  const std::string error = attempt.why.empty() || attempt.request_out ? std::string() : "; " + attempt.why;
  if (pod.surged() && is_on()) {
    const std::string why = why_not_replaced(controllers_, *group);
    return Hold{reason::awaiting_replacement,
                fmt::format("waiting until its replacement is Ready (--surge): {} has {} other Ready pods and needs "
                            "{}{}{}{}",
                            group->controller.text(), others_ready(controllers_, *group, pod), needed(*group, pod),
                            why.empty() ? "" : "; ", why, error)};
  }
  if (is_on() && pod.owned) return std::nullopt;  // `failed` holds it
  // Without surge, the pod is evicted as ever as soon as it is given back, or if that is not possible.
  const TimePoint limit = attempt.first_seen.value_or(now) + adoption_limit;
  if (!is_on() && (attempt.refused || now >= limit || (pod.given_back() && pod.owned))) return std::nullopt;
  return Hold{
      reason::surge_failed,
      fmt::format("waiting until ReplicaSet {} has adopted the pod again, which was to be replaced in advance{}",
                  pod.surge_mark->owner, error),
      is_on() ? TimePoint::max() : limit};
}

// After a pod was given back, its ReplicaSet deletes one pod, and asks no budget. Until then, and until the disruption
// controller has counted again, a budget would let the drain evict another one.
std::optional<EvictionGuard::Hold> SurgeBook::held_while_surplus(const k8s::Pod& pod, TimePoint now) {
  if (surplus_.empty() || !is_guarded(pod) || !pod.ready) return std::nullopt;
  ControllerGroup* group = controllers_.group_of(pod);
  if (!group || group->controller.gone || !group->controller.replicas) return std::nullopt;
  const auto found = surplus_.find(key_of(*group));
  if (found == surplus_.end()) return std::nullopt;
  Surplus& surplus = found->second;
  const auto owned = static_cast<std::int64_t>(controllers_.tally_of(*group).owned);
  const bool is_deleted = owned <= std::int64_t{*group->controller.replicas};
  if (is_deleted && std::exchange(surplus.seen, false)) surplus.recounted = now + UncountedDeployments::recount_limit;
  if ((is_deleted ? surplus.recounted : surplus.until) <= now) return std::nullopt;
  group->holds = true;
  if (is_deleted)
    return Hold{
        reason::surge_failed,
        fmt::format("waiting until the disruption controller has counted the pods of {} again, because a pod was "
                    "given back to it",
                    group->controller.text()),
        surplus.recounted};
  surplus.seen = true;
  return Hold{reason::surge_failed,
              fmt::format("waiting until {} has {} pods again: a pod was given back to it, and it has {} now",
                          group->controller.text(), *group->controller.replicas, owned),
              surplus.until};
}

// A budget counts several controllers, and this is the only pod of its Deployment although there should be more. It
// waits for another one, which keeps the Deployment in the budget. If none comes, it is evicted as without surge.
std::optional<EvictionGuard::Hold> SurgeBook::held_as_only_owned(const k8s::Pod& pod, const ControllerGroup& group,
                                                                 TimePoint now) {
  Attempt& attempt = attempt_of(pod);
  std::string budget;
  if (controllers_.staying(group).size() <= 1)
    budget = judge_.budgets().shared(pod, group.controller.replicas.value_or(1));
  if (budget.empty()) {
    attempt.alone_since.reset();
    return std::nullopt;
  }
  if (!attempt.alone_since) attempt.alone_since = now;
  return Hold{reason::awaiting_replacement,
              fmt::format("waiting for another pod of {} (--surge): PodDisruptionBudget {} counts pods of other "
                          "controllers, too, and would allow one more disruption while the only pod has no owner",
                          group.controller.text(), budget),
              saturating_add(*attempt.alone_since, options_.guards.surge_limit)};
}

std::optional<EvictionGuard::Hold> SurgeBook::held(const k8s::Pod& pod, TimePoint now) {
  if (is_hurried(options_)) return std::nullopt;
  if (auto hold = uncounted_.held(pod, now)) return hold;
  const auto found = attempts_.find(pod.uid);
  if (found != attempts_.end() && found->second.has_lost(pod)) {
    const TimePoint until = found->second.lost_since.value_or(now) + adoption_limit;
    if (now < until)
      return Hold{reason::surge_failed,
                  fmt::format("waiting until ReplicaSet {} has adopted the pod again, which was to be replaced in "
                              "advance: {}",
                              found->second.mark->owner, found->second.why),
                  until};
  }
  if (!is_on() && !pod.surge_mark && surplus_.empty()) return std::nullopt;
  if (surge_wish(pod.annotations) == "false") return std::nullopt;
  if (pod.surge_mark) {
    auto hold = held_with_mark(pod, found == attempts_.end() ? Attempt() : found->second, now);
    if (hold || pod.surged() || !pod.owned) return hold;
  }
  if (auto hold = held_while_surplus(pod, now)) return hold;
  if (!is_on() || !is_guarded(pod)) return std::nullopt;
  ControllerGroup* group = controllers_.group_of(pod);
  // Without a group, the ControllerGuard lets the pod wait until the controller has been read.
  if (!group) return std::nullopt;
  const SurgeJudge::Judgement judgement = judge_.judge(pod, *group);
  if (judgement.plan == SurgeJudge::Plan::unknown)
    return Hold{reason::controller_unknown, fmt::format("waiting until {} (--surge)", judgement.why)};
  if (judgement.plan != SurgeJudge::Plan::surge) return std::nullopt;
  group->holds = true;
  if (auto hold = held_as_only_owned(pod, *group, now)) return hold->until > now ? std::move(hold) : std::nullopt;
  const std::string why = found == attempts_.end() ? std::string() : found->second.why;
  if (found != attempts_.end() && found->second.failed) {
    const TimePoint until = std::max(found->second.not_before, found->second.retry_at);
    return Hold{reason::surge_failed, why, until > now ? until : TimePoint::max()};
  }
  return Hold{reason::awaiting_replacement,
              why.empty() ? fmt::format("waiting for its replacement (--surge): {} replaces at most {} at a time",
                                        group->controller.text(), surge_places(group->controller))
                          : "waiting for its replacement (--surge): " + why};
}

bool SurgeBook::Attempt::has_lost(const k8s::Pod& pod) const {
  return mark && !pod.surge_mark && (!pod.has_template_hash() || !pod.owned);
}

void SurgeBook::Attempt::forget_mark() {
  const bool may_come = done == Step::Kind::surge || answer_lost;
  if (!may_come) mark.reset();
  first_seen.reset();
  surged_since.reset();
  back_since.reset();
  lost_since.reset();
}

void SurgeBook::Attempt::note_loss(Rng& rng, TimePoint now) {
  if (lost_since) return;
  lost_since = now;
  if (failed) return;
  failed = true;
  not_before = now + pause.next(rng);
  why = fmt::format("the annotation {} was removed from the pod; the drain tries it again later",
                    k8s::surge_mark_annotation);
}

SurgeBook::Step SurgeBook::Attempt::relabel(const k8s::Pod& pod) {
  request_out = true;
  Step step{Step::Kind::relabel, pod};
  step.pod.surge_mark = mark;
  return step;
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

SurgeBook::BeforeOf SurgeBook::before_of(const std::vector<TrackedPod*>& leaving, TimePoint now) const {
  BeforeOf all;
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (!pod.controller || pod.finished() || pod.terminating() || tracked->state == PodState::terminating) continue;
    // The server refuses a signal as a rule, so its pod counts as one that stays.
    const bool asked = tracked->state == PodState::in_flight && tracked->signal;
    const bool is_surged = pod.surged() || is_under_way(pod, Step::Kind::surge, now);
    if (!asked && !is_surged) continue;
    const ControllerGroup* group = controllers_.group_of(pod);
    if (!group) continue;
    if (asked && pod.ready) ++all[group].asked;
    if (!is_surged) continue;
    Before& before = all[group];
    ++before.surged;
    // Like others_owned(), so that both know the same, whichever watch is behind.
    before.owned += stays_owned(controllers_, pod) ? 1 : 0;
    // The replacement of a pod that leaves is one no more.
    if (tracked->state == PodState::in_flight && !asked) continue;
    before.replacements += pod.surged() ? 1 : 0;
    if (pod.surge_mark) before.need = std::max(before.need, needed(*group, pod));
    const auto attempt = attempts_.find(pod.uid);
    if (attempt != attempts_.end() && attempt->second.last_before) {
      before.number = std::min(before.number.value_or(UINT64_MAX), *attempt->second.last_before);
      before.need = std::max(before.need, attempt->second.most_ready);
    } else if (pod.surge_mark) {
      before.created = std::min(before.created.value_or(WallTime::max()), pod.surge_mark->at);
    }
  }
  return all;
}

bool SurgeBook::Before::has(const ControlledPod& member) const {
  return (!number || member.number <= *number) &&
         (!created || (member.created && *member.created + clocks_differ < *created));
}

std::int64_t SurgeBook::Before::others_ready(const ControllerBook& controllers, const ControllerGroup& group,
                                             const k8s::Pod& pod) const {
  return std::ranges::count_if(controllers.staying(group), [&](const ControlledPod* member) {
    return member->ready && member->key != pod.key() && !member->surged_elsewhere && has(*member);
  });
}

std::int64_t SurgeBook::Before::due(const ControllerBook& controllers, const ControllerGroup& group,
                                    const k8s::Pod& pod) const {
  std::int64_t ready = 1 + asked, newer = 0, newer_ready = 0;
  for (const ControlledPod* member : controllers.staying(group)) {
    if (member->key == pod.key()) continue;
    const bool counts = member->ready && !member->surged_elsewhere;
    ready += counts ? 1 : 0;
    if (has(*member)) continue;
    ++newer;
    newer_ready += counts ? 1 : 0;
  }
  // A scale-up adds pods, too. As long as one of the newer pods is not Ready, that may be the replacement.
  const std::int64_t replaced = newer_ready + static_cast<std::int64_t>(replacements) - newer;
  return ready - std::clamp<std::int64_t>(replaced, 0, newer_ready);
}

std::optional<SurgeBook::Step> SurgeBook::step_of_lost(const k8s::Pod& pod, Attempt& attempt, TimePoint now) {
  if (pod.has_template_hash() || attempt.orphan || attempt.retry_at > now ||
      is_under_way(pod, Step::Kind::relabel, now))
    return std::nullopt;
  return attempt.relabel(pod);
}

std::optional<SurgeBook::Step> SurgeBook::step_back(const k8s::Pod& pod, const BeforeOf& all_before, TimePoint now) {
  Attempt& attempt = attempt_of(pod);
  attempt.mark = pod.surge_mark;
  attempt.lost_since.reset();
  ControllerGroup* group = controllers_.group_of(pod);
  // The watch shows what the step has changed.
  if (attempt.done == (pod.given_back() ? Step::Kind::relabel : Step::Kind::surge)) attempt.done.reset();
  if (pod.given_back()) {
    const bool begins = !attempt.back_since;
    if (begins) {
      attempt.back_since = now;
      attempt.adopted = false;
      attempt.surged_since.reset();
      attempt.replaced_since.reset();
      attempt.failed = true;
      attempt.not_before = now + attempt.pause.next(rng_);
      if (attempt.why.empty()) attempt.why = "the pod was given back to its ReplicaSet; the drain tries it again later";
    }
    // Twice at most, so that a mark which cannot be removed holds no other pod for ever.
    const bool adopted_now = pod.owned && !std::exchange(attempt.adopted, true);
    if (group && (begins || adopted_now)) surplus_[key_of(*group)] = {now + adoption_limit, adopted_now, {}};
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
  if (const auto before = all_before.find(group); group && before != all_before.end())
    attempt.most_ready =
        std::max(attempt.most_ready, before->second.others_ready(controllers_, *group, pod) + (pod.ready ? 1 : 0));
  if (attempt.orphan || attempt.retry_at > now || is_under_way(pod, Step::Kind::relabel, now)) return std::nullopt;
  if (group && is_replaced(*group, pod)) {
    attempt.surged_since = now;
    if (!attempt.replaced_since) attempt.replaced_since = now;
    if (now < *attempt.replaced_since + refusal_limit) return std::nullopt;
    attempt.why = fmt::format(
        "its eviction was not accepted within {} min, so the pod was given back to its "
        "ReplicaSet; the drain tries it again later",
        std::chrono::floor<minutes>(refusal_limit).count());
    return attempt.relabel(pod);
  }
  attempt.replaced_since.reset();
  // A scale-down may have made its replacement unnecessary. A pod that a budget blocks is not asked for its hold.
  if (group) group->holds = true;
  const bool known = group && controllers_.sees(pod.ns);
  const Duration limit = is_on() ? options_.guards.surge_limit : known ? Duration::zero() : Duration(unseen_patience);
  if (now < saturating_add(*attempt.surged_since, limit) || (is_on() && !group)) return std::nullopt;
  const std::string cause = group ? why_not_replaced(controllers_, *group) : std::string();
  attempt.why = !is_on() ? std::string()
                         : fmt::format(
                               "no replacement was Ready within {} s, so the pod was given back to its "
                               "ReplicaSet; the drain tries it again later{}{}",
                               std::chrono::ceil<seconds>(limit).count(), cause.empty() ? "" : ": ", cause);
  return attempt.relabel(pod);
}

bool SurgeBook::may_surge(const TrackedPod& tracked, ControllerGroup& group, const Before& before, TimePoint now) {
  const k8s::Pod& pod = tracked.pod;
  if (!may_begin_with(tracked) || !is_guarded(pod) || !controllers_.sees(pod.ns)) return false;
  // A ReplicaSet that is not known yet may have Ready pods of this Deployment.
  if (controllers_.questions().may_be_of(group.controller)) return false;
  const auto attempt = attempts_.find(pod.uid);
  if (attempt != attempts_.end() && std::max(attempt->second.not_before, attempt->second.retry_at) > now) return false;
  if (is_under_way(pod, Step::Kind::surge, now) || judge_.judge(pod, group).plan != SurgeJudge::Plan::surge)
    return false;
  // The Deployment may have been scaled up since it was read, perhaps hours ago.
  if (options_.guards.surge == Surge::single_replica && is_read_first(controllers_, pod, group, now)) return false;
  // One pod at least keeps its owner, so that a budget which counts several controllers goes on to count this one.
  return others_owned(controllers_, group, pod) > static_cast<std::int64_t>(before.owned) ||
         judge_.budgets().shared(pod, group.controller.replicas.value_or(1)).empty();
}

std::vector<SurgeBook::Step> SurgeBook::take_steps(const std::vector<TrackedPod*>& leaving, std::size_t most,
                                                   bool may_begin, TimePoint now) {
  std::vector<Step> steps;
  if (is_hurried(options_)) return steps;
  BeforeOf before = before_of(leaving, now);
  std::size_t surged = 0;
  for (const auto& [group, of_group] : before) surged += of_group.surged;
  std::vector<const TrackedPod*> candidates, marked, failing;
  uncounted_.begin_round();
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (pod.finished() || pod.terminating() || tracked->state == PodState::terminating) continue;
    const auto known = attempts_.find(pod.uid);
    if (known != attempts_.end() && known->second.has_lost(pod)) {
      if (!known->second.request_out) known->second.note_loss(rng_, now);
      marked.push_back(tracked);
    } else if (pod.surge_mark && pod.controller) {
      Attempt& attempt = attempt_of(pod);
      if (!attempt.first_seen) attempt.first_seen = now;
      if (!attempt.orphan && !attempt.refused) uncounted_.note(pod, now);
      (attempt.failures > 0 ? failing : marked).push_back(tracked);
    } else if (pod.controller) {
      if (known != attempts_.end() && !known->second.request_out) known->second.forget_mark();
      if (is_on() && may_begin && controllers_.group_of(pod)) candidates.push_back(tracked);
    }
  }
  // Pods whose last request has failed come last, because the next one may hang.
  marked.insert(marked.end(), failing.begin(), failing.end());
  for (const TrackedPod* tracked : marked) {
    if (steps.size() >= most) break;
    const k8s::Pod& pod = tracked->pod;
    Attempt& attempt = attempt_of(pod);
    std::optional<Step> step;
    if (attempt.has_lost(pod)) {
      if (!attempt.request_out) step = step_of_lost(pod, attempt, now);
    } else if (tracked->state != PodState::in_flight) {
      step = step_back(pod, before, now);
    }
    if (step) steps.push_back(*std::move(step));
  }
  for (const TrackedPod* tracked : candidates) {
    if (steps.size() >= most || surged >= most_surged) break;
    const k8s::Pod& pod = tracked->pod;
    ControllerGroup& group = *controllers_.group_of(pod);
    Before& of_group = before[&group];
    if (of_group.surged >= surge_places(group.controller) || !may_surge(*tracked, group, of_group, now)) continue;
    Attempt& attempt = attempt_of(pod);
    attempt.request_out = attempt.sent = true;
    // A pod that is surged already may have been replaced, and its replacement may not be one of those before.
    const std::int64_t ready_now = others_ready(controllers_, group, pod) + 1;
    attempt.most_ready = std::max(of_group.due(controllers_, group, pod), std::min(of_group.need, ready_now));
    attempt.last_before = controllers_.tally_of(group).last_number;
    k8s::SurgeMark& mark = attempt.mark.emplace();
    mark.hash = k8s::value_at(pod.labels, k8s::template_hash_label).value_or("");
    mark.owner = pod.controller->name;
    mark.owner_uid = pod.controller->uid;
    mark.ready = attempt.most_ready;
    mark.deployment = group.controller.name;
    mark.deployment_uid = group.controller.uid;
    attempt.surged_since.reset();
    attempt.replaced_since.reset();
    attempt.back_since.reset();
    attempt.lost_since.reset();
    of_group.number = std::min(of_group.number.value_or(UINT64_MAX), *attempt.last_before);
    of_group.need = std::max(of_group.need, attempt.most_ready);
    ++of_group.surged;
    ++of_group.owned;
    ++surged;
    steps.push_back({Step::Kind::surge, pod, mark});
  }
  return steps;
}

void SurgeBook::answered(const Step& step, const Result<k8s::Pod>& answer, TimePoint now) {
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
    attempt.failures = 0;
    attempt.right_missing = attempt.refused = false;
    if (step.kind != Step::Kind::surge) return;
    attempt.why.clear();
    attempt.not_before = {};
    attempt.failed = !answer->surged();
    if (answer->surged()) return;
    // An admission webhook has changed what was written, perhaps to what it was before. Otherwise the watch will show a
    // pod without label and mark.
    const bool restored = answer->has_template_hash();
    if (restored) {
      attempt.done.reset();
      attempt.mark.reset();
    }
    attempt.not_before = now + attempt.pause.next(rng_);
    attempt.why =
        fmt::format("an admission webhook {}, so the pod cannot be replaced in advance",
                    restored ? "restores the label pod-template-hash" : "removes the annotation haulout.dev/surged");
    return;
  }
  const Error& error = answer.error();
  const bool passes = k8s::is_conflict(error) || k8s::is_gone(error) || k8s::may_heal(error);
  attempt.right_missing = k8s::is_denied_by_rbac(error);
  attempt.refused = !passes && attempt.failures > 0;  // one refusal proves nothing
  attempt.failed = attempt.failed || (step.kind == Step::Kind::surge && !passes);
  if (step.kind == Step::Kind::surge && !attempt.answer_lost) attempt.mark.reset();
  ++attempt.failures;
  attempt.why = fmt::format("{}: {}", words_of(step.kind), error.message());
  attempt.retry_at = now + attempt.retry.next(rng_, error.retry_after);
}

void SurgeBook::orphaned(const Step& step) {
  Attempt& attempt = attempt_of(step.pod);
  attempt.request_out = false;
  attempt.orphan = attempt.refused = true;
  attempt.why = fmt::format("its ReplicaSet {} does not exist any more, so the pod cannot be given back",
                            step.pod.surge_mark->owner);
}

bool SurgeBook::may_have_surged() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const auto& entry) { return entry.second.sent || entry.second.first_seen; });
}

Surged SurgeBook::surged() const {
  Surged surged;
  for (const auto& [uid, attempt] : attempts_) {
    surged.unanswered |= attempt.request_out || attempt.answer_lost;
    if (attempt.mark) surged.marks.emplace(uid, *attempt.mark);
  }
  return surged;
}

std::size_t SurgeBook::requests_out() const {
  return static_cast<std::size_t>(
      std::count_if(attempts_.begin(), attempts_.end(), [](const auto& entry) { return entry.second.request_out; }));
}

TimePoint SurgeBook::next_due(TimePoint now) const {
  TimePoint next = std::min(judge_.facts().next_due(now), uncounted_.next_due(now));
  const auto consider = [&](TimePoint at) {
    if (at > now) next = std::min(next, at);
  };
  for (const auto& [uid, attempt] : attempts_) {
    consider(attempt.not_before);
    consider(attempt.retry_at);
    if (attempt.done) consider(attempt.done_until);
    if (attempt.surged_since && !attempt.replaced_since && is_on())
      consider(saturating_add(*attempt.surged_since, options_.guards.surge_limit));
    if (attempt.surged_since && !is_on()) consider(*attempt.surged_since + unseen_patience);
    if (attempt.replaced_since) consider(*attempt.replaced_since + refusal_limit);
    if (attempt.first_seen && !is_on()) consider(*attempt.first_seen + adoption_limit);
    if (attempt.lost_since) consider(*attempt.lost_since + adoption_limit);
    if (attempt.alone_since) consider(saturating_add(*attempt.alone_since, options_.guards.surge_limit));
  }
  for (const auto& [controller, surplus] : surplus_) {
    consider(surplus.until);
    consider(surplus.recounted);
  }
  return next;
}

void SurgeBook::diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts) {
  if (is_hurried(options_)) return;
  if (is_on() && !leaving.empty() && !judge_.budgets().visible() && judge_.budgets().forbidden())
    facts.push_back({reason::right_missing,
                     "poddisruptionbudgets (--surge)",
                     "the drain cannot see budgets, so it replaces no only pod of a Deployment in advance, and none "
                     "because of a closed budget; grant verbs list and watch on resource poddisruptionbudgets (API "
                     "group \"policy\")",
                     {}});
  for (const auto& [resource, why] : judge_.facts().missing_rights())
    facts.push_back({reason::right_missing,
                     resource + " (--surge)",
                     fmt::format("pods whose {} cannot be read are not replaced in advance: {}; grant verb get on "
                                 "resource {} (API group \"\")",
                                 resource, why, resource),
                     {}});
  std::map<std::string, std::vector<const TrackedPod*>> impossible;  // by the obstacle, which names the controller
  for (const TrackedPod* tracked : leaving) {
    const k8s::Pod& pod = tracked->pod;
    if (tracked->state == PodState::terminating) continue;
    const auto found = attempts_.find(pod.uid);
    if (found != attempts_.end() && !found->second.why.empty() &&
        (found->second.failed || found->second.refused || found->second.failures >= failures_that_count)) {
      const bool right = found->second.right_missing;
      facts.push_back({right ? reason::right_missing : reason::surge_failed,
                       "pod " + pod.key(),
                       found->second.why + (right ? "; grant verb patch on resource pods (API group \"\")" : ""),
                       {},
                       about_pod(*tracked)});
    }
    if (!is_on() || pod.surge_mark || tracked->decision.verdict != Verdict::evict || !is_guarded(pod)) continue;
    const ControllerGroup* group = controllers_.group_of(pod);
    if (!group) continue;
    if (const SurgeJudge::Judgement judgement = judge_.judge(pod, *group);
        judgement.plan == SurgeJudge::Plan::impossible)
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
