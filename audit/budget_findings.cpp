#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "audit/findings.hpp"
#include "audit/surge_advice.hpp"
#include "audit/words.hpp"
#include "drain/budget_book.hpp"
#include "drain/controller_book.hpp"
#include "drain/diagnoses.hpp"
#include "drain/reasons.hpp"

namespace haulout::audit {
namespace {

using drain::BudgetBook;
using Pods = std::vector<std::size_t>;

// Returns the pods of the budget whose eviction the budget decides about, and which are Ready or not.
Pods held_by(const World& world, const WorldBudget& budget, bool ready) {
  Pods held;
  for (const std::size_t index : budget.pods) {
    const WorldPod& pod = world.pods[index];
    if (pod.leaves() && pod.pod.ready == ready && pod.budgets.size() == 1 &&
        !BudgetBook::exempt(pod.pod, budget.budget))
      held.push_back(index);
  }
  return held;
}

bool never_opens(std::string_view code) {
  return code == reason::budget_never_allows || code == reason::budget_needs_all_pods ||
         code == reason::budget_of_single_pod || code == reason::budget_misconfigured ||
         code == reason::budget_sync_failed;
}

bool counts_as_unready(const k8s::Pod& pod) {
  return !pod.ready && !pod.finished() && !pod.terminating();
}

// Returns true if a pod of the budget has not been Ready for longer than pods need to start.
bool has_broken_pod(const World& world, const WorldBudget& budget) {
  return std::ranges::any_of(budget.pods, [&](std::size_t index) {
    const k8s::Pod& pod = world.pods[index].pod;
    return counts_as_unready(pod) && pod.created && world.now - *pod.created > drain::ControllerBook::starting;
  });
}

// Returns true if the drain that is audited replaces all these pods before it evicts them.
bool are_surged(const World& world, const Pods& pods, drain::Surge mode) {
  return mode != drain::Surge::off && std::ranges::all_of(pods, [&](std::size_t pod) {
           return surge_of(world, world.pods[pod], mode).plan == drain::SurgeJudge::Plan::surge;
         });
}

// Returns true if the controllers of all these pods have as many pods as they want.
bool are_complete(const World& world, const Pods& pods) {
  return std::ranges::all_of(pods, [&](std::size_t pod) {
    const Group& group = world.group_of(world.pods[pod]);
    const auto& replicas = group.controller.replicas;
    return replicas && group.pods.size() >= static_cast<std::size_t>(std::max(0, *replicas));
  });
}

void diagnose(const World& world, const WorldBudget& of, const std::vector<k8s::Pod>& members, const Pods& held,
              Findings& findings) {
  if (held.empty()) return;
  std::vector<const k8s::Pod*> waiting;
  waiting.reserve(held.size());
  for (const std::size_t pod : held) waiting.push_back(&world.pods[pod].pod);
  const auto fact = drain::diagnose_budget({of.budget, waiting, world.now, &members, are_complete(world, held)});
  if (!fact) return;
  const bool unready = std::ranges::any_of(members, counts_as_unready);
  Finding finding{.object = of.name().text()};
  std::tie(finding.text, finding.way_out) = text_and_way_out(of.name().kind + " " + of.budget.key(), fact->message);
  if (never_opens(fact->code)) {
    finding.id = "BudgetNeverOpens";
    const bool surged = are_surged(world, held, world.drain.guards.surge);
    finding.severity = surged ? Severity::note : Severity::blocks;
    if (surged)
      finding.way_out += "; the drain replaces its pods before it evicts them (--surge)";
    else if (are_surged(world, held, drain::Surge::closed_budget))
      finding.way_out += "; or drain with --surge=closed-budget, which replaces its pods before it evicts them";
  } else if (fact->code == reason::budget_unhealthy_deadlock) {
    finding.id = "BrokenBudget";
    finding.severity = Severity::blocks;
  } else if (fact->code == reason::budget_awaits_replacement && unready) {
    finding.id = "BrokenBudget";
    finding.severity = has_broken_pod(world, of) ? Severity::blocks : Severity::risk;
    finding.way_out = "repair the pods that are not Ready";
    if (!of.budget.always_allow_unhealthy)
      finding.way_out +=
          "; unhealthyPodEvictionPolicy: AlwaysAllow lets drains evict these, but not the pods that are Ready";
  } else {
    return;  // it passes by itself
  }
  findings.add(std::move(finding), held);
}

void diagnose(const World& world, const WorldBudget& of, Findings& findings) {
  std::vector<k8s::Pod> members;
  members.reserve(of.pods.size());
  for (const std::size_t pod : of.pods) members.push_back(world.pods[pod].pod);
  for (const bool ready : {false, true}) diagnose(world, of, members, held_by(world, of, ready), findings);
}

void find_empty(const World& world, const WorldBudget& of, Findings& findings) {
  if (!of.pods.empty()) return;
  findings.add(of.name(),
               {.id = "BudgetMatchesNothing",
                .severity = Severity::note,
                .object = of.name().text(),
                .text = fmt::format("PodDisruptionBudget {} selects no pod, so it protects none", of.budget.key()),
                .way_out = world.of_manifests
                               ? "no workload in these files has such pods: correct its selector, unless an operator "
                                 "or another chart creates them"
                               : "correct its selector, or delete it if its pods are gone for good"});
}

// Pods that several budgets select, grouped by these budgets and by the owner.
void find_two_budgets(const World& world, Findings& findings) {
  std::map<std::pair<std::vector<std::size_t>, std::size_t>, Pods> overlaps;
  for (std::size_t i = 0; i < world.pods.size(); ++i) {
    const WorldPod& pod = world.pods[i];
    if (pod.budgets.size() > 1 && pod.leaves() && !BudgetBook::ignores_budgets(pod.pod))
      overlaps[{pod.budgets, pod.group}].push_back(i);
  }
  for (const auto& [which, pods] : overlaps) {
    BudgetBook book;
    std::vector<std::string> uids;
    std::string object;
    for (const std::size_t index : which.first) {
      const WorldBudget& budget = world.budgets[index];
      book.update(budget.budget.uid, &budget.budget);
      uids.push_back(budget.budget.uid);
      object += (object.empty() ? budget.name().text() : "+" + budget.budget.name);
    }
    Finding finding{.id = "TwoBudgets", .severity = Severity::blocks, .object = object};
    const auto [text, way_out] = text_and_way_out({}, book.explain(uids));
    finding.text = fmt::format("{}: {}", count_of_pods(pods.size()), text);
    finding.way_out = way_out;
    findings.add(std::move(finding), pods);
  }
}

}  // namespace

void find_budget_faults(const World& world, Findings& findings) {
  for (const WorldBudget& budget : world.budgets) {
    find_empty(world, budget, findings);
    diagnose(world, budget, findings);
  }
  find_two_budgets(world, findings);
}

}  // namespace haulout::audit
