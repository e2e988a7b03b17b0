#include "drain/controller_guard.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "drain/reasons.hpp"
#include "drain/text.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

// How long a replacement may be unschedulable before that is reported, if canaries are off.
constexpr Duration patience_with_homeless = std::chrono::seconds(30);

std::string seconds(Duration duration) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(duration).count());
}

// Returns the override in the annotation `key`. The annotation of the pod has precedence over that of its controller,
// unless its value is invalid.
template <class T>
std::optional<T> override_of(const k8s::Pod& pod, const Controller& controller, std::string_view key,
                             std::optional<T> (*parse)(std::string_view)) {
  for (const auto* annotations : {&pod.annotations, &controller.annotations})
    if (const auto value = k8s::value_at(*annotations, key))
      if (const auto parsed = parse(*value)) return parsed;
  return std::nullopt;
}

std::optional<Share> share_in(std::string_view text) {
  auto share = parse_share(text);
  return share ? std::optional(*share) : std::nullopt;
}

bool has_yet_to_leave(const TrackedPod& tracked) {
  return tracked.decision.verdict != Verdict::skip && !tracked.pod.terminating() &&
         (tracked.state == PodState::queued || tracked.state == PodState::in_flight ||
          tracked.state == PodState::parked);
}

using Pods = std::span<const TrackedPod* const>;

Scope advice(Pods pods) {
  Scope scope = about(pods);
  scope.holds = false;
  return scope;
}

void diagnose_override(const Controller& controller, const std::map<std::string, std::string>& annotations, Pods pods,
                       std::vector<DiagnosisFact>& facts) {
  // All invalid annotations share one fact, because facts with the same code and subject count as the same fact.
  std::string message;
  const auto ignored = [&](std::string_view key, std::string_view value, std::string_view why) {
    message += fmt::format("{}the annotation {}={} is ignored: {}", message.empty() ? "" : "; ", key, value, why);
  };
  if (const auto single = k8s::value_at(annotations, single_replica_annotation);
      single && !parse_single_replica(*single))
    ignored(single_replica_annotation, *single, "it must be allow, warn or block");
  if (const auto share = k8s::value_at(annotations, max_unavailable_annotation))
    if (const auto parsed = parse_share(*share); !parsed)
      ignored(max_unavailable_annotation, *share, parsed.error().message());
  if (!message.empty())
    facts.push_back({reason::override_invalid, controller.text(), std::move(message), {}, advice(pods)});
}

void diagnose_unknown(const Controller& controller, const Guards& guards, Pods pods,
                      std::vector<DiagnosisFact>& facts) {
  std::string message =
      controller.gone
          ? "it does not exist any more, so perhaps nothing replaces its pods; if they are needed, create the "
            "controller again before the drain"
          : fmt::format("the number of its replicas could not be read, so the drain assumes more than one: {}",
                        controller.unknown);
  if (controller.cannot_scale && guards.max_unavailable)
    message += fmt::format(
        "; --max-unavailable-per-controller limits only the eviction of its pods with the annotation {}, because "
        "perhaps nothing replaces the others",
        max_unavailable_annotation);
  facts.push_back({reason::replicas_unknown, controller.text(), std::move(message), {}, advice(pods)});
}

void diagnose_single(const TrackedPod& tracked, const Controller& controller, std::vector<DiagnosisFact>& facts) {
  facts.push_back({reason::only_replica_evicted,
                   controller.text(),
                   fmt::format("it has a single replica, pod {}, so it is unavailable from the eviction until the "
                               "replacement is Ready; to avoid that, scale it to two replicas before a drain",
                               tracked.pod.key()),
                   {},
                   advice(Pods(std::array{&tracked}))});
}

// A controller, and its pods on this node that were not evicted yet.
struct Here {
  const Controller* controller = nullptr;
  std::int32_t ready = 0;
  bool budget = false;
  std::vector<const TrackedPod*> pods{};
};

}  // namespace

std::optional<SingleReplica> single_replica_override(const k8s::Pod& pod, const Controller& controller) {
  return override_of(pod, controller, single_replica_annotation, parse_single_replica);
}

std::optional<Share> max_unavailable_override(const k8s::Pod& pod, const Controller& controller) {
  return override_of(pod, controller, max_unavailable_annotation, share_in);
}

std::optional<ControllerGuard::Hold> ControllerGuard::held_by_budget(const ControllerGroup& group,
                                                                     const k8s::Pod& pod) const {
  // Evicting a pod that is not Ready does not reduce the number of Ready pods.
  if (!guards_.max_unavailable || !pod.ready) return std::nullopt;
  // A controller without a Scale may never replace the pod. So only the pod's own annotation sets a limit.
  if (group.controller.cannot_scale && !max_unavailable_override(pod, Controller())) return std::nullopt;
  const auto annotated = max_unavailable_override(pod, group.controller);
  const Share share = annotated.value_or(*guards_.max_unavailable);
  const std::size_t allowed = share_of(share, group.controller.replicas);
  const std::size_t missing = book_.tally_of(group).without_replacement;
  if (missing < allowed) return std::nullopt;
  const std::string of =
      group.controller.replicas ? fmt::format(" of its {}", *group.controller.replicas) : std::string();
  return Hold{reason::blocked_by_controller_budget,
              fmt::format("waiting until a replacement is Ready: {} may lack at most {}{} ({}={}), and lacks {} now",
                          group.controller.text(), pods(allowed), of,
                          annotated ? max_unavailable_annotation : "--max-unavailable-per-controller", to_string(share),
                          missing)};
}

// Returns the replacement that is unschedulable, or nullptr if there is none. If a pod was being evicted before the
// first count (perhaps the canary of an earlier run), its replacement may have existed then. In that case all pods of
// the group are considered.
const ControlledPod* ControllerGuard::homeless(const ControllerGroup& group) const {
  if (!book_.any_was_unschedulable()) return nullptr;
  const ControllerTally& tally = book_.tally_of(group);
  if (tally.any_left_before) return tally.homeless_of_all;
  return group.left_first ? tally.homeless : nullptr;
}

std::optional<ControllerGuard::Hold> ControllerGuard::held_by_canary(const ControllerGroup& group,
                                                                     TimePoint now) const {
  if (!has_canaries()) return std::nullopt;
  if (const ControlledPod* member = homeless(group)) {
    const TimePoint told = homeless_told(*member);
    return Hold{told <= now ? reason::replacement_unschedulable : reason::awaiting_replacement,
                fmt::format("waiting because a replacement, pod {}, cannot be scheduled: {}", member->key,
                            *member->unschedulable),
                told <= now ? TimePoint::max() : told};
  }
  if (!group.left_first) return std::nullopt;
  const TimePoint until = *group.left_first + guards_.canary;
  if (book_.tally_of(group).found_home || until <= now) return std::nullopt;
  return Hold{reason::awaiting_replacement,
              fmt::format("waiting until the first replacement of {} is scheduled, but at most {} (--canary)",
                          group.controller.text(), seconds(guards_.canary)),
              until};
}

// The pipeline asks about all pods of a controller one after the other. So the answer for a pod that is Ready and has
// no limit of its own is kept: it is the same for the next one.
std::optional<ControllerGuard::Hold> ControllerGuard::held_by_group(const ControllerGroup& group, const k8s::Pod& pod,
                                                                    TimePoint now) {
  const auto ask = [&] {
    auto hold = held_by_canary(group, now);
    return hold ? std::move(hold) : held_by_budget(group, pod);
  };
  if (!pod.ready || k8s::value_at(pod.annotations, max_unavailable_annotation)) return ask();
  const std::uint64_t tally = book_.tally_of(group).count;
  if (answer_.tally != tally || answer_.at != now) answer_ = {tally, now, ask()};
  return answer_.hold;
}

// Counts the pods of the controller before the first of them leaves, also if another client has deleted that one: it is
// the canary then, and lacks a replacement.
void ControllerGuard::leaving(const k8s::Pod& pod, Leaves leaves) {
  ControllerGroup* group = guards_.follows_pods() && is_guarded(pod) ? book_.group_of(pod) : nullptr;
  if (leaves != Leaves::no && group && !group->counted && !group->controller.gone && book_.sees(pod.ns) &&
      !book_.questions().may_be_of(group->controller))
    book_.count_first(*group);
  book_.leaving(pod, leaves != Leaves::no);
}

std::optional<ControllerGuard::Hold> ControllerGuard::held(const k8s::Pod& pod, TimePoint now) {
  if (!guards_.follows_pods() || !is_guarded(pod)) return std::nullopt;
  ControllerGroup* group = book_.group_of(pod);
  if (!group) {
    want(pod);
    return Hold{reason::controller_unknown,
                fmt::format("waiting until its {} {} has been read", pod.controller->kind, pod.controller->name)};
  }
  if (!book_.sees(pod.ns))
    return Hold{reason::controller_unknown,
                fmt::format("waiting until the pods of {} on other nodes can be listed", group->controller.text())};
  if (group->controller.gone) return std::nullopt;
  // The first count must include all existing pods: those of an unknown ReplicaSet would count as replacements later.
  if (const ControllerQuestion* found = group->counted ? nullptr : book_.questions().may_be_of(group->controller))
    return Hold{reason::controller_unknown,
                fmt::format("waiting until {} {} has been read, because it may belong to {}", found->owner.kind,
                            found->owner.name, group->controller.text())};
  if (!group->counted) book_.count_first(*group);
  // An eviction of the pod was sent and its response was lost. The pod counts as evicted already, so another request
  // does not make one more pod missing.
  if (const ControlledPod* member = book_.find(pod); member && member->leaving) return std::nullopt;
  if (!group->left_first && book_.tally_of(*group).any_left) group->left_first = now;
  auto hold = held_by_group(*group, pod, now);
  group->holds |= hold.has_value();
  return hold;
}

bool ControllerGuard::reads_first(const k8s::Pod& pod, TimePoint now) {
  const bool matters = guards_.single_replica == SingleReplica::block || guards_.surge == Surge::single_replica;
  if (!matters || !is_guarded(pod) || pod.surged()) return false;
  ControllerGroup* group = book_.group_of(pod);
  if (!group || !is_read_first(book_, pod, *group, now)) return false;
  wishes_to_read_ = true;
  return true;
}

TimePoint ControllerGuard::homeless_told(const ControlledPod& member) const {
  return member.unschedulable_since + (has_canaries() ? guards_.canary : patience_with_homeless);
}

std::vector<ControllerGuard::Unschedulable> ControllerGuard::unschedulable(TimePoint now) const {
  std::vector<Unschedulable> found;
  for (const auto& [uid, group] : book_.groups()) {
    const ControlledPod* member = homeless(group);
    if (member && homeless_told(*member) <= now)
      found.push_back({&group.controller, member->key, *member->unschedulable});
  }
  return found;
}

TimePoint ControllerGuard::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [uid, group] : book_.groups()) {
    const ControlledPod* pod = homeless(group);
    if (pod && homeless_told(*pod) > now) next = std::min(next, homeless_told(*pod));
  }
  return next;
}

SingleReplica ControllerGuard::single_replica(const k8s::Pod& pod, const Controller& controller) const {
  if (guards_.single_replica == SingleReplica::allow || controller.replicas != 1) return SingleReplica::allow;
  return single_replica_override(pod, controller).value_or(guards_.single_replica);
}

bool ControllerGuard::judges(const Decision& decision) {
  return decision.verdict == Verdict::evict ||
         (decision.reason == reason::waiting_for_completion && !decision.is_awaited);
}

Decision ControllerGuard::judge(Decision decision, const k8s::Pod& pod) {
  if (guards_.single_replica == SingleReplica::allow || !judges(decision)) return decision;
  if (!is_guarded(pod) || pod.terminating()) return decision;
  Finding finding;
  const auto own_word = parse_single_replica(k8s::value_at(pod.annotations, single_replica_annotation).value_or(""));
  ControllerGroup* group = book_.group_of(pod);
  if (!group && own_word != SingleReplica::allow) {
    want(pod);
    finding = {Verdict::park, reason::controller_unknown,
               fmt::format("waiting until its {} {} has been read", pod.controller->kind, pod.controller->name)};
  } else if (group && !pod.surged() && single_replica(pod, group->controller) == SingleReplica::block) {
    // A pod that is surged already waits for its replacement, also if its Deployment has one replica only since then.
    group->holds = true;
    book_.questions().note(question_about(pod));
    finding = {
        Verdict::refuse, reason::single_replica,
        fmt::format("{} has a single replica, so it is unavailable while this pod moves; scale it to two replicas "
                    "for the drain, or annotate it {}=allow",
                    group->controller.text(), single_replica_annotation)};
  } else {
    return decision;
  }
  decision.findings.push_back(finding);
  decision.verdict = finding.verdict;
  decision.reason = finding.reason;
  decision.message = finding.message;
  return decision;
}

void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerGuard& guard, bool budgets_known,
                       std::vector<DiagnosisFact>& facts) {
  const Guards& guards = guard.guards();
  const bool together = budgets_known && guards.single_replica != SingleReplica::allow && !guards.max_unavailable;
  std::map<std::string, Here> here;  // key: UID of the controller
  for (const TrackedPod* pod : pods) {
    const TrackedPod& tracked = *pod;
    if (!has_yet_to_leave(tracked) || !is_guarded(tracked.pod)) continue;
    const Controller* controller = guard.book().of(tracked.pod);
    if (!controller) continue;
    Here& of_it = here[controller->uid];
    of_it.controller = controller;
    of_it.ready += tracked.pod.ready ? 1 : 0;
    of_it.budget |= !tracked.budgets->empty();
    of_it.pods.push_back(pod);
    diagnose_override(*controller, tracked.pod.annotations, Pods(&of_it.pods.back(), 1), facts);
    if (guard.single_replica(tracked.pod, *controller) == SingleReplica::warn && !guard.is_replaced_first(tracked.pod))
      diagnose_single(tracked, *controller, facts);
  }
  for (const auto& [uid, of_it] : here) {
    const Controller& controller = *of_it.controller;
    diagnose_override(controller, controller.annotations, of_it.pods, facts);
    if (!controller.replicas) diagnose_unknown(controller, guards, of_it.pods, facts);
    if (together && controller.replicas.value_or(0) > 1 && controller.ready_replicas > 0 &&
        of_it.ready >= controller.ready_replicas && !of_it.budget)
      facts.push_back(
          {reason::last_ready_pods,
           controller.text(),
           fmt::format("{} on this node, and no PodDisruptionBudget selects {}; to limit how many are evicted "
                       "at the same time, use --max-unavailable-per-controller",
                       controller.ready_replicas == 1
                           ? "its only Ready pod is"
                           : fmt::format("all its {} Ready pods are", controller.ready_replicas),
                       controller.ready_replicas == 1 ? "it" : "them"),
           {},
           advice(of_it.pods)});
  }
}

}  // namespace haulout::drain
