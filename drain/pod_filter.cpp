#include "drain/pod_filter.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"
#include "drain/gangs.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";
constexpr std::string_view karpenter_annotation = "karpenter.sh/do-not-disrupt";
constexpr std::string_view autoscaler_annotation = "cluster-autoscaler.kubernetes.io/safe-to-evict";

Verdict verdict_of(Treatment treatment) {
  switch (treatment) {
    case Treatment::evict: return Verdict::evict;
    case Treatment::skip: return Verdict::skip;
    case Treatment::refuse: return Verdict::refuse;
    case Treatment::park: return Verdict::park;
  }
  return Verdict::refuse;
}

std::string annotation(const k8s::Pod& pod, std::string_view key) {
  return k8s::value_at(pod.annotations, key).value_or("");
}

// Parses a duration in Go's syntax, as Karpenter accepts it: "30m", "1h30m", "1.5h". Returns nullopt for other texts
// and negative durations.
std::optional<std::chrono::microseconds> parse_protection(std::string_view text) {
  const auto protection = parse_duration(text);
  if (!protection || *protection < Duration::zero()) return std::nullopt;
  return std::chrono::ceil<std::chrono::microseconds>(*protection);
}

DaemonSetState state_of(const k8s::OwnerReference& daemon_set, const DaemonSetStates& states) {
  const auto known = states.find(daemon_set.uid);
  return known == states.end() ? DaemonSetState::unknown : known->second;
}

Finding daemon_set_finding(const k8s::Pod& pod, Treatment orphaned, Treatment managed, const DaemonSetStates& states) {
  const DaemonSetState state = state_of(*pod.controller, states);
  const std::string name = pod.controller->name;
  if (state == DaemonSetState::gone) {
    return {verdict_of(orphaned), reason::orphaned_daemon_set_pod,
            fmt::format("its DaemonSet {} does not exist any more, so it is not created again", name)};
  }
  return {
      verdict_of(managed), reason::daemon_set_managed,
      state == DaemonSetState::unknown
          ? fmt::format("managed by DaemonSet {}, which could not be read; if it exists, it would create the pod again "
                        "on this node at once",
                        name)
          : fmt::format("managed by DaemonSet {}, which would create it again on this node at once", name)};
}

bool terminating_for_too_long(const k8s::Pod& pod, const Policy& policy, WallTime wall) {
  if (!policy.skip_terminating_after || !pod.deletion_timestamp) return false;
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(*policy.skip_terminating_after);
  return wall - *pod.deletion_timestamp > limit;
}

// Returns the finding of a rule that waits until the pod has finished, or nullopt if the pod is not waited for.
std::optional<Finding> waiting_finding(const k8s::Pod& pod, const PodHandling& handling,
                                       std::optional<Duration> draining_for) {
  if (handling.action != PodAction::wait_completed || pod.finished() || pod.terminating()) return std::nullopt;
  if (handling.limit && draining_for.value_or(Duration::zero()) >= *handling.limit) return std::nullopt;
  const std::string limit = handling.limit
                                ? fmt::format("until the pod has finished, at most until {} after the cordon",
                                              format_duration(*handling.limit))
                                : std::string("without a time limit until the pod has finished");
  return Finding{Verdict::park, reason::waiting_for_completion, fmt::format("waiting {} ({})", limit, handling.source)};
}

// Returns the finding about a member of a gang.
Finding gang_finding(const Gang& gang, Treatment treatment) {
  if (treatment == Treatment::park)
    return {Verdict::park, reason::waiting_for_gang,
            fmt::format("waiting without a time limit until the pod has finished, because it is a member of {}, which "
                        "runs only as a whole (--gangs=wait)",
                        gang.text())};
  return {verdict_of(treatment), reason::gang_member,
          fmt::format("a member of {}, which runs only as a whole", gang.text())};
}

// Returns true if the pod counts as finished. Since Kubernetes 1.27, the kubelet also sets a terminal phase on each pod
// that it has stopped, before it unmounts the volumes. So the phase of a terminating pod does not show whether it had
// finished before, and such a pod does not count as finished. Exception: if policy evicts finished pods, as kubectl
// does, the difference does not matter, so such a pod counts as finished, unless it belongs to a DaemonSet.
bool counts_as_finished(const k8s::Pod& pod, const Policy& policy) {
  return pod.finished() && (!pod.terminating() || (policy.finished == Treatment::evict && !is_daemon_pod(pod)));
}

}  // namespace

bool is_selected_daemon_pod(const k8s::Pod& pod, const Policy& policy) {
  const auto& selectors = policy.evict_daemon_sets;
  return is_daemon_pod(pod) &&
         std::any_of(selectors.begin(), selectors.end(), [&pod](const k8s::LabelSelector& selector) {
           return !selector.empty() && selector.matches(pod.labels);
         });
}

std::string_view why_daemon_stays(const k8s::Pod& pod, const Policy& policy, std::string_view own_pod_uid,
                                  bool another_was_evicted) {
  if (!own_pod_uid.empty() && pod.uid == own_pod_uid && is_selected_daemon_pod(pod, policy))
    return "Haulout itself runs in it, and its DaemonSet would start Haulout again on this node at once, so it stays";
  return another_was_evicted && is_daemon_pod(pod) ? created_in_place : std::string_view();
}

bool is_mirror(const k8s::Replica& pod) {
  if (k8s::value_at(pod.annotations, mirror_annotation)) return true;
  return pod.controller && pod.controller->kind == "Node" && pod.controller->api_version == "v1";
}

bool containers_have_ended(const k8s::Pod& pod) {
  return pod.deletion_grace_seconds.value_or(1) == 0 || pod.containers_terminated;
}

bool is_daemon_pod(const k8s::Replica& pod) {
  return pod.controller && pod.controller->kind == "DaemonSet";
}

bool can_look_up_daemon_set(const k8s::Pod& pod) {
  return is_daemon_pod(pod) && pod.controller->api_version == "apps/v1";
}

std::string do_not_disrupt(const k8s::Pod& pod, WallTime wall) {
  if (annotation(pod, autoscaler_annotation) == "false") return fmt::format("{}=false", autoscaler_annotation);
  const std::string value = annotation(pod, karpenter_annotation);
  if (value == "true") return fmt::format("{}=true", karpenter_annotation);
  const auto protection = parse_protection(value);
  if (protection && (!pod.start_time || wall < *pod.start_time + *protection))
    return fmt::format("{}={}{}", karpenter_annotation, value,
                       pod.start_time ? " until " + k8s::format_time(*pod.start_time + *protection) : "");
  return {};
}

bool can_be_judged_again(std::string_view reason) {
  return reason == reason::left_by_labels || reason == reason::left_by_rule;
}

Decision decide(const k8s::Pod& pod, const Policy& policy, const DaemonSetStates& daemon_sets, WallTime wall,
                const DrainFacts& facts) {
  Decision decision;
  auto& found = decision.findings;
  const bool of_daemon_set = is_daemon_pod(pod) && state_of(*pod.controller, daemon_sets) != DaemonSetState::gone;
  auto handling = handling_of(pod, policy.rules, policy.cluster_api_labels);
  // A pod of a DaemonSet never finishes, and its data stays on the node when it is created again. So of all actions,
  // only `skip` makes sense for it.
  if (of_daemon_set && handling && handling->action != PodAction::skip) handling.reset();
  const auto is_to = [&](PodAction action) { return handling && handling->action == action; };
  // A rule with the action `evict` answers the filters that refuse pods which cannot be replaced or lose data. Any rule
  // answers the filters that would leave the pod: it says what becomes of the pod instead.
  const auto answered = [&](Treatment treatment) {
    return is_to(PodAction::evict) || (handling && treatment == Treatment::skip) ? Treatment::evict : treatment;
  };
  const auto gang = gang_of(pod);
  if (is_to(PodAction::last))
    decision.stage = Stage::last;
  else if (policy.waits_for_work && named_gang(pod) && !is_to(PodAction::evict))
    decision.stage = Stage::gang;
  const bool spared = policy.gangs != Treatment::evict && !handling && policy.waits_for_work && !facts.gang_is_broken;
  const Treatment of_gang = spared ? policy.gangs : Treatment::evict;
  const bool mirror = is_mirror(pod);
  if (mirror)
    found.push_back({Verdict::skip, reason::mirror_pod,
                     "a static pod: it is deleted only when its manifest on the node is removed"});
  if (!policy.pod_selector.matches(pod.labels))
    found.push_back({Verdict::skip, reason::not_selected, "does not match the pod selector"});
  for (const k8s::LabelSelector& selector : policy.leave)
    if (!selector.empty() && selector.matches(pod.labels))
      found.push_back({Verdict::skip, std::string(left_by_labels),
                       fmt::format("matches --leave-pods {}: it stays", to_string(selector))});
  if (is_to(PodAction::skip))
    found.push_back({Verdict::skip, reason::left_by_rule, fmt::format("stays because of its {}", handling->source)});
  if (terminating_for_too_long(pod, policy, wall))
    found.push_back({Verdict::skip, std::string(terminating_too_long),
                     "has been terminating for longer than --skip-wait-for-delete-timeout"});
  const bool finished = counts_as_finished(pod, policy);
  if (finished && !mirror)
    found.push_back({verdict_of(policy.finished), reason::finished,
                     pod.phase == k8s::PodPhase::succeeded ? "has succeeded, so it does not run any more"
                                                           : "has failed, so it does not run any more"});
  if (!finished && is_daemon_pod(pod)) {
    Finding finding = daemon_set_finding(pod, answered(policy.orphaned_daemon_set), policy.daemon_set, daemon_sets);
    const bool stays = of_daemon_set && !facts.stays_because.empty();
    const bool leaves = of_daemon_set && !stays && is_selected_daemon_pod(pod, policy);
    if (stays) finding = {Verdict::skip, reason::daemon_set_managed, std::string(facts.stays_because)};
    if (leaves)
      decision.stage = Stage::daemon_sets;
    else
      found.push_back(std::move(finding));
  }
  const auto waiting =
      handling && policy.waits_for_work ? waiting_finding(pod, *handling, facts.draining_for) : std::nullopt;
  if (waiting && !handling->limit) found.push_back(*waiting);
  if (gang && of_gang == Treatment::park) found.push_back(gang_finding(*gang, of_gang));
  // The following filters protect running containers and their data, so they do not apply to a pod in a terminal phase.
  if (!pod.finished()) {
    if (pod.has_empty_dir)
      found.push_back({verdict_of(answered(policy.empty_dir)), reason::empty_dir,
                       "has an emptyDir volume, whose data the eviction deletes"});
    if (!pod.controller)
      found.push_back({verdict_of(answered(policy.unmanaged)), reason::unmanaged,
                       "has no controller, so it is not created again elsewhere"});
    if (gang && of_gang != Treatment::park) found.push_back(gang_finding(*gang, of_gang));
    if (waiting && handling->limit) found.push_back(*waiting);
    if (const std::string protection = do_not_disrupt(pod, wall); !protection.empty() && !pod.terminating())
      found.push_back(
          {verdict_of(policy.do_not_disrupt), reason::do_not_disrupt, "protected by its annotation " + protection});
  }
  for (const Finding& finding : found) {
    // The filter `finished` decides even if its action is evict. The filters after it do not matter.
    const bool decides = finding.verdict != Verdict::evict || finding.reason == reason::finished;
    if (!decides) continue;
    decision.verdict = finding.verdict;
    decision.reason = finding.reason;
    decision.message = finding.message;
    decision.is_awaited = finding.reason == reason::waiting_for_gang ||
                          (finding.reason == reason::waiting_for_completion && !handling->limit);
    break;
  }
  return decision;
}

}  // namespace haulout::drain
