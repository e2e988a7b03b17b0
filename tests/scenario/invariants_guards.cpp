// The invariants about guards and about the order in which pods leave. They are checked only if the connection has no
// faults (`sound_wire`), because otherwise the drain cannot know what they need.
#include <fmt/format.h>

#include <algorithm>

#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {

using namespace std::chrono_literals;

// Returns the ReplicaSet or StatefulSet of a pod, or null if it is deleted. A Deployment above it has the same number
// of replicas.
sim::Json Invariants::workload_of(const Instance& pod) const {
  if (pod.controller.empty()) return {};
  for (const char* resource : {"replicasets", "statefulsets"})
    for (const auto& object : cluster_.store().list(resource))
      if (sim::uid_of(*object) == pod.controller) return *object;
  return {};
}

bool Invariants::is_only_replica(const Instance& pod, bool perhaps) const {
  // A surged pod is evicted only after its replacement is Ready.
  if (given_.options.guards.single_replica != drain::SingleReplica::block || pod.surged) return false;
  // If the drain reports that it could not read a controller, it assumes that the controller has more than one replica.
  const sim::Json workload = workload_of(pod);
  // The report names a Deployment by its own name, which is the prefix of the names of its ReplicaSets.
  const auto& owner = pod.pod.controller;
  const bool unknown =
      owner && std::any_of(unknown_controllers_.begin(), unknown_controllers_.end(), [&](const auto& told) {
        const std::string key = told.substr(told.find(' ') + 1), ours = pod.pod.ns + "/" + owner->name;
        return ours == key || ours.starts_with(key + "-");
      });
  if (unknown) return false;
  // While a Deployment is rolled out, it has several ReplicaSets.
  if (const Rollout* rollout = rollout_of(pod)) {
    const auto [least, most] = replicas_known(*rollout);
    return (perhaps ? least : most) == 1;
  }
  return !workload.is_null() && sim::number(workload, "/spec/replicas") == 1;
}

// True if the pod may have to wait for replacements of other pods.
bool Invariants::waits_for_others(const Instance& pod) const {
  // Every drain lets a pod wait that an earlier one has surged, and the other pods of its Deployment: after it was
  // given back, the ReplicaSet deletes one of them.
  const bool of_surged = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    return entry.second.pod.surge_mark && is_of_same_deployment(pod, entry.second);
  });
  if (pod.pod.surge_mark || of_surged) return true;
  if (!given_.options.guards.follows_pods()) return false;
  // A budget that also selects pods of a Deployment may not count the Deployment while such a pod is surged.
  const auto all = budgets();
  const auto is_shared = [&](const k8s::PodDisruptionBudget& budget) {
    return budget.selects(pod.pod) && std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
             return rollout_of(entry.second) && budget.selects(entry.second.pod);
           });
  };
  if (given_.options.guards.surge != drain::Surge::off && std::any_of(all.begin(), all.end(), is_shared)) return true;
  const auto& controller = pod.pod.controller;
  const bool of_another_kind = controller && !controller->api_version.starts_with("apps/");
  return of_another_kind || !workload_of(pod).is_null();
}

// Implements the documented order independently of the drain's code.
Invariants::Tier Invariants::tier_of(const Instance& pod) const {
  std::int64_t order = 0;
  const auto& rules = given_.options.order;
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const auto& one) { return one.selector.matches(pod.pod.labels); });
  if (rule != rules.end()) order = rule->order;
  const auto own = pod.pod.annotations.find("haulout.dev/drain-order");
  if (own != pod.pod.annotations.end()) order = std::stoll(own->second);
  const bool critical = pod.pod.priority_class.starts_with("system-");
  const int stage = stage_of(pod);
  if (stage == 1) return {stage, order, gang_of(pod.pod), false, 0};
  return {stage, order, "", critical, pod.pod.priority};
}

std::string Invariants::gang_of(const k8s::Pod& pod) {
  if (pod.controller && pod.controller->kind == "DaemonSet") return "";
  const auto label = [&](const char* key) { return k8s::value_at(pod.labels, key).value_or(""); };
  if (const auto set = label("jobset.sigs.k8s.io/jobset-name"); !set.empty()) return "JobSet " + pod.ns + "/" + set;
  const auto set = label("leaderworkerset.sigs.k8s.io/name"), group = label("leaderworkerset.sigs.k8s.io/group-index");
  if (!set.empty() && !group.empty()) return "LeaderWorkerSet " + pod.ns + "/" + set + " group " + group;
  return pod.pod_group.empty() ? "" : "PodGroup " + pod.ns + "/" + pod.pod_group;
}

bool Invariants::is_in_broken_gang(const Instance& pod) const {
  const std::string gang = gang_of(pod.pod);
  return !gang.empty() && std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    return &other != &pod && on_our_node(other) && other.cut_off > pod.bound && gang_of(other.pod) == gang;
  });
}

// With `park`, no running member is evicted unless its gang is broken already. With `refuse`, nothing is evicted while
// a member runs that was there when the drain began. In any case the drain says which gang it breaks, before it asks
// for the eviction of a running member. A rule for a member applies instead of `park` and `refuse`.
void Invariants::check_gangs(const Instance& pod) {
  if (pod.terminating || pod.gone || pod.life != 0) return;
  const drain::Treatment gangs = given_.options.policy.gangs;
  const std::string gang = gang_of(pod.pod);
  const bool runs = !gang.empty() && !pod.had_finished;
  if (runs && !gangs_told_.contains(gang) && !is_in_broken_gang(pod))
    violated("gangs: " + pod.key + " is evicted, and nobody has said so");
  if (runs && gangs == drain::Treatment::park && !handling(pod.pod) && !is_in_broken_gang(pod))
    violated("gangs: evicted although its gang runs: " + pod.key);
  if (gangs != drain::Treatment::refuse) return;
  for (const auto& [uid, other] : pods_) {
    const bool stays =
        other.here_at_first && other.bound < began_ && !other.terminating && !other.gone && other.life == 0;
    if (!on_our_node(other) || !stays || other.had_finished || gang_of(other.pod).empty() || handling(other.pod))
      continue;
    if (verdict(other) != drain::Verdict::skip)
      violated(fmt::format("gangs: {} is evicted although {} forbids the drain", pod.key, other.key));
  }
}

// No running member is evicted while policy keeps another pod on the node, or while a gang that comes before it has a
// member there that runs and is not being evicted. Exempt are members of gangs that are broken already.
void Invariants::check_gang_alone(const Instance& pod) {
  if (stage_of(pod) != 1 || pod.had_finished || pod.terminating || pod.life != 0 || is_in_broken_gang(pod)) return;
  for (const auto& [uid, other] : pods_) {
    if (&other == &pod || !on_our_node(other) || other.gone || other.terminating || other.life != 0) continue;
    if (clock_.now() - other.bound < news_takes || may_look_managed(other) || told_left_.contains(uid)) continue;
    if (verdict(other) == drain::Verdict::park)
      violated(fmt::format("gangs: {} is evicted although {} has to wait", pod.key, other.key));
    const bool is_earlier = stage_of(other) == 1 && gang_of(other.pod) != gang_of(pod.pod) && !other.had_finished &&
                            tier_of(other) < tier_of(pod);
    if (is_earlier && verdict(other) == drain::Verdict::evict && !other.accepted)
      violated(fmt::format("gangs: {} is evicted although a gang before it is there: {}", pod.key, other.key));
  }
}

std::optional<Invariants::Handling> Invariants::handling(const k8s::Pod& pod) const {
  const auto label = k8s::value_at(pod.labels, "cluster.x-k8s.io/drain").value_or("");
  using drain::ClusterApiLabels;
  const ClusterApiLabels labels = given_.options.policy.cluster_api_labels;
  if (labels == ClusterApiLabels::all && label == "skip") return Handling{drain::PodAction::skip, {}};
  if (labels != ClusterApiLabels::off && label == "wait-completed")
    return Handling{drain::PodAction::wait_completed, {}};
  const bool of_job = pod.controller && pod.controller->kind == "Job";
  const std::string app = "app=" + k8s::value_at(pod.labels, "app").value_or("") + "=";
  for (const drain::PodRule& rule : given_.options.policy.rules)
    if (rule.text.starts_with(app) || (of_job && rule.text.starts_with("kind:Job=")))
      return Handling{rule.action, rule.limit};
  return std::nullopt;
}

int Invariants::stage_of(const Instance& pod) const {
  if (is_own(pod)) return 4;
  if (is_selected_daemon(pod)) return 3;
  const auto found = handling(pod.pod);
  if (found && found->action == drain::PodAction::last) return 2;
  return !gang_of(pod.pod).empty() && !(found && found->action == drain::PodAction::evict) ? 1 : 0;
}

void Invariants::check_rule(const Instance& pod) {
  if (pod.terminating || pod.gone || pod.life != 0) return;
  const auto found = handling(pod.pod);
  if (!found) return;
  if (found->action == drain::PodAction::skip) violated("rule: evicted although it stays: " + pod.key);
  const bool too_early = !found->limit || draining_for() < *found->limit;
  if (found->action == drain::PodAction::wait_completed && !pod.had_finished && too_early)
    violated("rule: evicted although it still works: " + pod.key);
}

// A pod is evicted only after an eviction was sent for each pod of the earlier tiers. Exempt are pods that are already
// terminating, and pods that something holds up. A pod of a later stage is evicted after all pods of earlier stages are
// deleted, unless it is a member of a gang that has finished by then.
void Invariants::check_order(const Instance& pod) {
  const bool left_its_gang = pod.had_finished && !gang_of(pod.pod).empty();
  if (stage_of(pod) > 1 || (stage_of(pod) == 1 && !left_its_gang)) check_others_gone(pod);
  if (left_its_gang) return;
  const Tier ours = tier_of(pod);
  for (const auto& [uid, other] : pods_) {
    if (&other == &pod || !on_our_node(other) || other.bound > began_ || other.first_sent || other.gone) continue;
    const std::string ns = other.key.substr(0, other.key.find('/'));
    if (other.terminating || touched_namespaces_.contains(ns) || hindered_.contains(uid)) continue;
    if (may_look_managed(other)) continue;
    if (verdict(other) == drain::Verdict::evict && tier_of(other) < ours)
      violated(fmt::format("order: {} evicted before {}", pod.key, other.key));
  }
}

void Invariants::check_others_gone(const Instance& last) {
  for (const auto& [uid, other] : pods_) {
    if (&other == &last || !on_our_node(other) || other.gone || clock_.now() - other.bound < news_takes) continue;
    if (stage_of(other) >= stage_of(last)) continue;
    if (stage_of(last) == 1 && other.had_finished && !gang_of(other.pod).empty()) continue;
    if (verdict(other) != drain::Verdict::skip && !told_left_.contains(uid) && !may_look_managed(other))
      violated(fmt::format("order: {}, which goes last, evicted while {} is there", last.key, other.key));
  }
}

void Invariants::check_controller(Instance& pod) {
  const bool ready = pod.ready_since && clock_.now() - *pod.ready_since > news_takes;
  pod.taken_ready = ready && !pod.terminating && !pod.gone;
  const sim::Json workload = workload_of(pod);
  if (workload.is_null() || !given_.sound_kubelets || pod.terminating || pod.gone) return;
  if (given_.options.guards.max_unavailable && pod.taken_ready)
    // While a Deployment is rolled out, it has several ReplicaSets.
    check_controller_budget(pod, rollout_of(pod) ? sim::number(rollout_of(pod)->spec, "/replicas", 1)
                                                 : sim::number(workload, "/spec/replicas"));
  if (given_.options.guards.canary > Duration::zero()) check_canary(pod);
}

// Compares the pods that the drain evicted while they were Ready, including this one, with those that have become Ready
// since. When a pod goes that has replaced another one, that other one lacks its replacement again.
void Invariants::check_controller_budget(const Instance& pod, std::int64_t replicas) {
  const drain::Share& share = *given_.options.guards.max_unavailable;
  const std::int64_t allowed =
      std::max<std::int64_t>(1, share.percent ? replicas * share.value / 100 : std::int64_t{share.value});
  std::int64_t taken = pod.ready_at_first ? 1 : 0, made_up_for = 0, ready = 0;
  for (const auto& [uid, other] : pods_) {
    if (&other == &pod || !(other.controller == pod.controller || is_of_same_deployment(pod, other))) continue;
    if (other.taken_ready && (other.in_flight > 0 || other.accepted)) {
      taken += other.ready_at_first ? 1 : 0;
      continue;
    }
    // Counts recent losses as Ready pods, because the drain may not have received their watch events yet.
    const bool lately_lost = (other.gone && clock_.now() - *other.gone <= news_takes) ||
                             (other.terminating && clock_.now() - *other.terminating <= news_takes);
    const bool counts = lately_lost || (!other.gone && !other.terminating && other.ready_since);
    made_up_for += counts && !other.ready_at_first ? 1 : 0;
    ready += counts ? 1 : 0;
  }
  if (taken - made_up_for > allowed && replicas - ready > allowed)
    violated(fmt::format("guards: {} is without {} Ready pods of {}, and may be without {}: {}", pod.controller,
                         taken - made_up_for, replicas, allowed, pod.key));
}

void Invariants::check_canary(const Instance& pod) {
  // The pod is itself a replacement, so one has found a node. One that its ReplicaSet has adopted looks like that.
  if (!pod.here_at_first || pod.adopted) return;
  std::optional<TimePoint> first;
  for (const auto& [uid, other] : pods_) {
    // While a Deployment is rolled out, it has several ReplicaSets.
    if (&other == &pod || !(other.controller == pod.controller || is_of_same_deployment(pod, other))) continue;
    if ((!other.here_at_first || other.adopted) && other.bound <= clock_.now()) return;
    if (other.first_sent && (other.in_flight > 0 || other.accepted))
      first = std::min(first.value_or(*other.first_sent), *other.first_sent);
    // A pod that another client has deleted counts as canary, too.
    if (on_our_node(other) && other.terminating && *other.terminating > began_ && heard_of(*other.terminating))
      first = std::min(first.value_or(*other.terminating), *other.terminating);
  }
  if (first && clock_.now() - *first < given_.options.guards.canary - news_takes)
    violated(fmt::format("guards: {} evicted before a replacement of the first pod has found a node", pod.key));
}

}  // namespace haulout::scenario
