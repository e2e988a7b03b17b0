#include "drain/replicas.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

#include "drain/reasons.hpp"
#include "k8s/entries.hpp"

namespace haulout::drain {

namespace {

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
    ignored(single_replica_annotation, *single, "it is none of allow, warn and block");
  if (const auto share = k8s::value_at(annotations, max_unavailable_annotation))
    if (const auto parsed = parse_share(*share); !parsed)
      ignored(max_unavailable_annotation, *share, parsed.error().message());
  if (!message.empty())
    facts.push_back({reason::override_invalid, controller.text(), std::move(message), {}, advice(pods)});
}

void diagnose_unknown(const Controller& controller, const Guards& guards, Pods pods,
                      std::vector<DiagnosisFact>& facts) {
  std::string message = fmt::format(
      "how many replicas it has could not be found out, so it is taken to have more than one: {}", controller.unknown);
  if (controller.cannot_scale && guards.max_unavailable)
    message += fmt::format(
        "; --max-unavailable-per-controller does not count its pods, which perhaps nothing replaces, but those with an "
        "annotation {} of their own",
        max_unavailable_annotation);
  facts.push_back({reason::replicas_unknown, controller.text(), std::move(message), {}, advice(pods)});
}

void diagnose_single(const TrackedPod& tracked, const Controller& controller, std::vector<DiagnosisFact>& facts) {
  facts.push_back({reason::only_replica_evicted,
                   controller.text(),
                   fmt::format("it has a single replica, pod {}: nothing of it runs from its eviction until its "
                               "replacement is Ready; with a second replica for the time being it would be served",
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

void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerGuard& guard, bool budgets_visible,
                       std::vector<DiagnosisFact>& facts) {
  const Guards& guards = guard.guards();
  const bool together = budgets_visible && guards.single_replica != SingleReplica::allow && !guards.max_unavailable;
  std::map<std::string, Here> here;  // by UID
  for (const TrackedPod* pod : pods) {
    const TrackedPod& tracked = *pod;
    if (!has_yet_to_leave(tracked) || !ControllerBook::guarded(tracked.pod)) continue;
    const Controller* controller = guard.book().of(tracked.pod);
    if (!controller) continue;
    Here& of_it = here[controller->uid];
    of_it.controller = controller;
    of_it.ready += tracked.pod.ready ? 1 : 0;
    of_it.budget |= !tracked.budgets->empty();
    of_it.pods.push_back(pod);
    diagnose_override(*controller, tracked.pod.annotations, Pods(&of_it.pods.back(), 1), facts);
    if (guard.single_replica(tracked.pod, *controller) == SingleReplica::warn)
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
                       fmt::format("all {} of its Ready pods are on this node and no PodDisruptionBudget keeps them "
                                   "from leaving together; --max-unavailable-per-controller does",
                                   controller.ready_replicas),
                       {},
                       advice(of_it.pods)});
  }
}

}  // namespace haulout::drain
