#include <nlohmann/json.hpp>

#include "cli/drain/report_json.hpp"
#include "cli/people/explanation.hpp"
#include "cli/people/fleet_summary.hpp"
#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

Json gates_json(const std::vector<GateView>& gates) {
  Json all = Json::array();
  for (const GateView& gate : gates)
    all.push_back({{"name", gate.name}, {"state", to_string(gate.state)}, {"message", gate.message}});
  return all;
}

Json fit_json(const std::optional<placement::PodFit>& fit) {
  if (!fit) return nullptr;
  return {{"fit", placement::to_string(fit->fit)},
          {"node", fit->node.empty() ? Json(nullptr) : Json(fit->node)},
          {"plugins", fit->plugins},
          {"message", fit->message}};
}

Json pod_json(const PodView& pod) {
  Json findings = Json::array();
  for (const drain::Finding& finding : pod.findings)
    findings.push_back(
        {{"verdict", drain::to_string(finding.verdict)}, {"reason", finding.reason}, {"message", finding.message}});
  Json budgets = Json::array();
  for (const PodBudget& budget : pod.budgets)
    budgets.push_back({{"podDisruptionBudget", budget.key},
                       {"allowed", budget.allowed},
                       {"healthy", budget.healthy},
                       {"needed", budget.desired}});
  const bool known = pod.evictable == Evictable::yes || pod.evictable == Evictable::no;
  return {{"pod", pod.key},
          {"controller", pod.controller},
          {"verdict", to_string(pod.fate)},
          {"evictable", known ? Json(pod.evictable == Evictable::yes) : Json(nullptr)},
          {"reason", pod.reason},
          {"message", pod.message},
          {"budgets", std::move(budgets)},
          {"fit", fit_json(pod.fit)},
          {"findings", std::move(findings)}};
}

Json problem_json(const std::optional<std::string>& problem) {
  return problem ? Json(*problem) : Json(nullptr);
}

}  // namespace

std::string explanation_json(const Explanation& about) {
  Json pods = Json::array();
  for (const PodView& pod : about.pods) pods.push_back(pod_json(pod));
  Json budgets = Json::array();
  for (const BudgetView& budget : about.budgets)
    budgets.push_back({{"podDisruptionBudget", budget.key},
                       {"allowed", budget.allowed},
                       {"healthy", budget.healthy},
                       {"needed", budget.needed},
                       {"podsHere", budget.pods}});
  Json findings = Json::array();
  for (const drain::DiagnosisFact& finding : about.findings)
    findings.push_back({{"code", finding.code}, {"subject", finding.subject}, {"message", finding.message}});
  Json attempts = Json::array();
  if (about.record)
    for (const agent::PastAttempt& each : about.record->attempts)
      attempts.push_back({{"at", k8s::format_time(each.at)}, {"reason", each.reason}, {"why", each.why}});
  const std::string authority = about.record ? about.record->authority : "";
  const Json json = {{"apiVersion", api_version},
                     {"kind", "NodeExplanation"},
                     {"at", k8s::format_time(about.at)},
                     {"status", Json::parse(node_status_json(about.node))},
                     {"cordon", about.cordon.empty() ? Json(nullptr) : Json(about.cordon)},
                     {"authority", authority.empty() ? Json(nullptr) : Json(authority)},
                     {"whyNotNow", about.why},
                     {"gates", gates_json(about.gates)},
                     {"lastAttempts", std::move(attempts)},
                     {"pods", std::move(pods)},
                     {"podsProblem", problem_json(about.pods_problem)},
                     {"fitProblem", problem_json(about.fits_problem)},
                     {"budgets", std::move(budgets)},
                     {"budgetsProblem", problem_json(about.budgets_problem)},
                     {"findings", std::move(findings)},
                     {"notKnown", about.not_known}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace haulout::cli
