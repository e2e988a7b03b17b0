#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "audit/findings.hpp"
#include "audit/surge_advice.hpp"
#include "audit/words.hpp"
#include "base/text.hpp"
#include "drain/controller_guard.hpp"
#include "drain/gangs.hpp"
#include "drain/reasons.hpp"

namespace haulout::audit {
namespace {

using Pods = std::vector<std::size_t>;
using Plan = drain::SurgeJudge::Plan;

// Returns the replicas of the group that a drain would make leave.
Pods replicas_of(const World& world, const Group& group) {
  Pods pods;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    if (drain::is_guarded(pod.pod) && pod.leaves()) pods.push_back(index);
  }
  return pods;
}

bool has_gang(const World& world, const Pods& pods) {
  return std::ranges::any_of(pods, [&](std::size_t pod) { return drain::named_gang(world.pods[pod].pod).has_value(); });
}

// Returns the number of pods that the controller wants; if that is unknown, the number that exist.
std::size_t wanted(const Group& group, const Pods& pods) {
  const auto& replicas = group.controller.replicas;
  return replicas ? static_cast<std::size_t>(std::max(0, *replicas)) : pods.size();
}

Severity severity_of_single(drain::SingleReplica policy) {
  return policy == drain::SingleReplica::block ? Severity::blocks : Severity::risk;
}

// Returns the number of pods of other controllers that a budget of the pod counts, too; the most if it has several.
std::size_t partners_of(const World& world, const WorldPod& pod) {
  std::size_t most = 0;
  for (const std::size_t budget : pod.budgets) {
    const auto& pods = world.budgets[budget].pods;
    const auto others = std::ranges::count_if(pods, [&](std::size_t other) {
      return world.pods[other].group != pod.group && drain::is_guarded(world.pods[other].pod);
    });
    most = std::max(most, static_cast<std::size_t>(others));
  }
  return most;
}

void find_single(const World& world, const Group& group, const Pods& pods, Findings& findings) {
  if (wanted(group, pods) != 1 || pods.size() != 1) return;
  const WorldPod& pod = world.pods[pods.front()];
  const drain::Guards& guards = world.drain.guards;
  Finding finding{.id = reason::single_replica};
  if (guards.surge != drain::Surge::off && surge_of(world, pod, guards.surge).plan == Plan::surge) {
    finding.severity = Severity::note;
    finding.text = "it has one pod, which the drain replaces before it evicts it (--surge)";
    finding.way_out = "none is needed; a second replica on another node also protects against the loss of a node";
    return findings.add(std::move(finding), pods);
  }
  const auto policy = drain::single_replica_override(pod.pod, group.controller).value_or(guards.single_replica);
  finding.severity =
      severity_of_single(guards.single_replica == drain::SingleReplica::allow ? guards.single_replica : policy);
  const std::size_t partners = partners_of(world, pod);
  if (finding.severity != Severity::blocks && partners > 0) {
    finding.severity = Severity::note;
    finding.text = fmt::format(
        "it has one pod, which shares a PodDisruptionBudget with {} of other controllers, so they are probably "
        "replicas of each other",
        count_of_pods(partners));
    finding.way_out = "none is needed if they are; otherwise run a second replica on another node";
    return findings.add(std::move(finding), pods);
  }
  finding.text = finding.severity == Severity::blocks
                     ? "it has one pod, and the drain evicts no pod that is the only one of its controller "
                       "(--single-replica=block)"
                     : "it has one pod, so its service is down from the eviction until the replacement is Ready";
  const auto surge = surge_of(world, pod, drain::Surge::single_replica);
  if (surge.plan == Plan::surge)
    finding.way_out =
        "run a second replica on another node, or drain with --surge=single-replica, which starts the replacement "
        "before the eviction";
  else
    finding.way_out =
        "run a second replica on another node" +
        (surge.plan == Plan::impossible ? "; --surge does not help, because " + surge.why : std::string());
  findings.add(std::move(finding), pods);
}

void find_one_node(const World& world, const Group& group, const Pods& pods, Findings& findings) {
  if (world.nodes.size() < 2 || wanted(group, pods) < 2 || pods.size() < 2 || has_gang(world, pods)) return;
  std::set<std::string> nodes;
  for (const std::size_t pod : pods) nodes.insert(world.pods[pod].pod.node_name);
  if (nodes.size() != 1 || nodes.begin()->empty()) return;
  findings.add({.id = "AllReplicasOnOneNode",
                .severity = Severity::risk,
                .text = fmt::format("all its {} are on one node, so a drain or the loss of this node stops all of them",
                                    count_of_pods(pods.size())),
                .way_out = "spread them with topologySpreadConstraints or podAntiAffinity on kubernetes.io/hostname"},
               pods);
}

void find_quorum(const World& world, const Group& group, const Pods& pods, Findings& findings) {
  const std::size_t replicas = wanted(group, pods);
  if (group.owner.kind != "StatefulSet" || replicas < 3 || replicas % 2 == 0 || pods.empty()) return;
  const bool any_budget = std::ranges::any_of(pods, [&](std::size_t pod) { return !world.pods[pod].budgets.empty(); });
  if (any_budget) return;
  findings.add({.id = "QuorumUnprotected",
                .severity = Severity::risk,
                .text = fmt::format("{} replicas look like a quorum, and no PodDisruptionBudget keeps two drains from "
                                    "evicting more than one of them at a time",
                                    replicas),
                .way_out = "create a PodDisruptionBudget with maxUnavailable: 1 for its pods"},
               pods);
}

Severity severity_of_gang(drain::Treatment treatment) {
  return treatment == drain::Treatment::evict ? Severity::risk : Severity::blocks;
}

void find_gangs(const World& world, Findings& findings) {
  std::map<drain::Gang, Pods> gangs;
  for (std::size_t i = 0; i < world.pods.size(); ++i)
    if (const auto gang = drain::gang_of(world.pods[i].pod); gang && world.pods[i].leaves()) gangs[*gang].push_back(i);
  for (const auto& [gang, pods] : gangs) {
    if (pods.size() < 2) continue;  // nothing else stops with it
    const drain::Treatment treatment = world.drain.policy.gangs;
    Finding finding{.id = reason::gang_broken, .severity = severity_of_gang(treatment), .object = gang.text()};
    finding.text = fmt::format("{} with {} runs only as a whole, so the eviction of one of them stops all", gang.text(),
                               count_of_pods(pods.size()));
    if (treatment == drain::Treatment::park)
      finding.text += "; the drain waits until they have finished (--gangs=wait)";
    if (treatment == drain::Treatment::refuse) finding.text += "; the drain refuses to begin (--gangs=refuse)";
    finding.way_out = treatment == drain::Treatment::evict
                          ? "to spare it, have the drain wait until its pods have finished (--gangs=wait)"
                          : "let it finish, or stop it before the drain";
    findings.add(std::move(finding), pods);
  }
}

}  // namespace

void find_thin_services(const World& world, Findings& findings) {
  for (const Group& group : world.groups) {
    const Pods pods = replicas_of(world, group);
    if (pods.empty()) continue;
    if (!has_gang(world, pods)) find_single(world, group, pods, findings);
    find_one_node(world, group, pods, findings);
    find_quorum(world, group, pods, findings);
  }
  find_gangs(world, findings);
}

}  // namespace haulout::audit
