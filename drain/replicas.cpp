// Diagnoses about controllers with few replicas, and ControllerBook's decision about pods of single replicas.
#include "drain/replicas.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

#include "drain/reasons.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

// The annotation of the pod has precedence over that of its controller, unless its value is invalid.
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
  std::string message = fmt::format(
      "the number of its replicas could not be read, so the drain assumes more than one: {}", controller.unknown);
  if (controller.cannot_scale && guards.max_unavailable)
    message += fmt::format(
        "; --max-unavailable-per-controller does not count its pods, because it may not replace them, except those "
        "with an annotation {} of their own",
        max_unavailable_annotation);
  facts.push_back({reason::replicas_unknown, controller.text(), std::move(message), {}, advice(pods)});
}

void diagnose_single(const TrackedPod& tracked, const Controller& controller, std::vector<DiagnosisFact>& facts) {
  facts.push_back({reason::only_replica_evicted,
                   controller.text(),
                   fmt::format("it has a single replica, pod {}, so it is unavailable from the eviction until the "
                               "replacement is Ready; scale it up to two replicas during the drain",
                               tracked.pod.key()),
                   {},
                   advice(Pods(std::array{&tracked}))});
}

// A controller, and its pods that have yet to leave this node.
struct Here {
  const Controller* controller = nullptr;
  std::int32_t ready = 0;
  bool budget = false;
  std::vector<const TrackedPod*> pods{};
};

}  // namespace

void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerBook& controllers, bool budgets_visible,
                       std::vector<DiagnosisFact>& facts) {
  const Guards& guards = controllers.guards();
  const bool together = budgets_visible && guards.single_replica != SingleReplica::allow && !guards.max_unavailable;
  std::map<std::string, Here> here;  // by UID
  for (const TrackedPod* pod : pods) {
    const TrackedPod& tracked = *pod;
    if (!has_yet_to_leave(tracked) || !ControllerBook::guarded(tracked.pod)) continue;
    const Controller* controller = controllers.of(tracked.pod);
    if (!controller) continue;
    Here& of_it = here[controller->uid];
    of_it.controller = controller;
    of_it.ready += tracked.pod.ready ? 1 : 0;
    of_it.budget |= !tracked.budgets->empty();
    of_it.pods.push_back(pod);
    diagnose_override(*controller, tracked.pod.annotations, Pods(&of_it.pods.back(), 1), facts);
    if (controllers.single_replica(tracked.pod, *controller) == SingleReplica::warn)
      diagnose_single(tracked, *controller, facts);
  }
  for (const auto& [uid, of_it] : here) {
    const Controller& controller = *of_it.controller;
    diagnose_override(controller, controller.annotations, of_it.pods, facts);
    if (!controller.replicas) diagnose_unknown(controller, guards, of_it.pods, facts);
    if (together && controller.replicas.value_or(0) > 1 && controller.ready_replicas > 0 &&
        of_it.ready >= controller.ready_replicas && !of_it.budget)
      facts.push_back({reason::last_ready_pods,
                       controller.text(),
                       fmt::format("all {} of its Ready pods are on this node, and no PodDisruptionBudget prevents "
                                   "their eviction at the same time; use --max-unavailable-per-controller",
                                   controller.ready_replicas),
                       {},
                       advice(of_it.pods)});
  }
}

std::optional<SingleReplica> single_replica_override(const k8s::Pod& pod, const Controller& controller) {
  return override_of(pod, controller, single_replica_annotation, parse_single_replica);
}

std::optional<Share> max_unavailable_override(const k8s::Pod& pod, const Controller& controller) {
  return override_of(pod, controller, max_unavailable_annotation, share_in);
}

SingleReplica ControllerBook::single_replica(const k8s::Pod& pod, const Controller& controller) const {
  if (guards_.single_replica == SingleReplica::allow || controller.replicas != 1) return SingleReplica::allow;
  return single_replica_override(pod, controller).value_or(guards_.single_replica);
}

Decision ControllerBook::judge(Decision decision, const k8s::Pod& pod) {
  if (guards_.single_replica == SingleReplica::allow || decision.verdict != Verdict::evict) return decision;
  if (!guarded(pod) || pod.terminating()) return decision;
  Finding finding;
  const auto own_word = parse_single_replica(k8s::value_at(pod.annotations, single_replica_annotation).value_or(""));
  Group* group = group_of(pod);
  if (!group && own_word != SingleReplica::allow) {
    want(pod);
    finding = {Verdict::park, reason::controller_unknown,
               fmt::format("waiting until its {} {} has been read", pod.controller->kind, pod.controller->name)};
  } else if (group && single_replica(pod, group->controller) == SingleReplica::block) {
    group->holds = true;
    asked_.try_emplace(pod.controller->uid, ControllerQuestion{*pod.controller, pod.ns});
    finding = {Verdict::refuse, reason::single_replica,
               fmt::format("{} has a single replica, so it is unavailable while this pod moves; scale it up during the "
                           "drain, or annotate it {}=allow",
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

}  // namespace haulout::drain
