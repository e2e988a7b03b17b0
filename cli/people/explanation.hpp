// Everything that can be said about one node from outside its agent, and why it is not updated now. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/people/findings.hpp"
#include "cli/people/node_view.hpp"
#include "cli/people/pod_views.hpp"

namespace haulout::cli {

enum class GateState { open, closed, unknown };
std::string_view to_string(GateState state);

struct GateView {
  std::string name;  // pause-node, pause-pool, pause-cluster, backoff, turn, agent
  GateState state = GateState::open;
  std::string message;
  bool operator==(const GateView&) const = default;
};

// What was read. A problem: why it cannot be read; then nothing is known.
struct NodeFacts {
  k8s::Node node;
  FleetFacts fleet{};
  std::vector<k8s::Pod> pods{};
  std::optional<std::string> pods_problem{};
  std::vector<k8s::PodDisruptionBudget> budgets{};
  std::optional<std::string> budgets_problem{};
  drain::DaemonSetStates daemon_sets{};
  // Whether the pods fit elsewhere, where that was asked for.
  bool fit_asked = false;
  std::vector<placement::PodFit> fits{};
  std::optional<std::string> fits_problem{};
  Asked asked{};
};

struct Explanation {
  WallTime at{};
  NodeView node;
  std::optional<agent::Record> record;
  std::string cordon;  // whose it is; empty: there is none
  std::vector<GateView> gates;
  std::vector<PodView> pods;
  std::optional<std::string> pods_problem;
  bool fit_asked = false;
  std::optional<std::string> fits_problem;
  std::vector<BudgetView> budgets;
  std::optional<std::string> budgets_problem;
  std::vector<drain::DiagnosisFact> findings;  // besides those that stand in the messages of pods and in `why`
  std::vector<std::string> not_known;          // of what they are about
  std::vector<std::string> why;                // it is not updated now: the first is what decides; never empty
};

// UIDs of the pods about which it is worth to know whether they fit elsewhere.
std::set<std::string> leaving_pods(const NodeFacts& facts, WallTime now);

// Pods are judged by an agent's default policy.
Explanation explain(const NodeFacts& facts, WallTime now);

// As `kubectl describe` would show it.
std::vector<std::string> explanation_text(const Explanation& explanation);
// kind NodeExplanation, indented, ends with a line break.
std::string explanation_json(const Explanation& explanation);

}  // namespace haulout::cli
