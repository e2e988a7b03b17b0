#include "drain/surge_judge.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "drain/gangs.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"
#include "k8s/surge_mark.hpp"

namespace haulout::drain {
namespace {

using std::chrono::seconds;

// How long a question whose request failed waits.
constexpr Duration question_pause = seconds(5);
// One 403 proves nothing, because an authorizer that has just started may refuse wrongly.
constexpr unsigned refusals_that_count = 2;

// Returns the value of "25%" or "2" for this number of replicas; nullopt if the text is neither. Percentages are
// rounded up, as the Deployment controller rounds maxSurge.
std::optional<std::size_t> resolved(std::string_view text, std::int32_t replicas) {
  const bool percent = text.ends_with('%');
  const auto value = parse_number<std::uint32_t>(percent ? text.substr(0, text.size() - 1) : text);
  if (!value) return std::nullopt;
  const std::uint64_t all = static_cast<std::uint64_t>(std::max(0, replicas));
  return percent ? static_cast<std::size_t>((all * *value + 99) / 100) : static_cast<std::size_t>(*value);
}

}  // namespace

std::optional<std::string> surge_wish(const std::map<std::string, std::string>& annotations) {
  auto value = k8s::value_at(annotations, surge_annotation);
  return value && (*value == "true" || *value == "false") ? value : std::nullopt;
}

std::string surge_obstacle(const Controller& controller) {
  if (controller.kind != "Deployment" || !controller.rollout)
    return fmt::format("{} is no Deployment, and only pods of Deployments can be replaced in advance",
                       controller.text());
  const k8s::Rollout& rollout = *controller.rollout;
  if (rollout.strategy != "RollingUpdate")
    return fmt::format("the strategy of {} is {}, so it never runs an additional pod", controller.text(),
                       rollout.strategy);
  // Of 100 replicas every percentage is at least one pod.
  if (resolved(rollout.max_surge, 100) == 0)
    return fmt::format("maxSurge of {} is 0, so it never runs an additional pod", controller.text());
  if (rollout.replacement_policy == "TerminationComplete")
    return fmt::format("podReplacementPolicy of {} is TerminationComplete, so it never runs an additional pod",
                       controller.text());
  return {};
}

std::string surge_obstacle(const k8s::Pod& pod, const Controller& controller) {
  if (auto obstacle = surge_obstacle(controller); !obstacle.empty()) return obstacle;
  if (!pod.has_template_hash())
    return fmt::format("pods of {} have no label {}", controller.text(), k8s::template_hash_label);
  if (pod.host_ports) return fmt::format("pods of {} use ports of the node", controller.text());
  if (const auto gang = named_gang(pod))
    return fmt::format("pods of {} are members of {}, which runs only as a whole", controller.text(), gang->text());
  return {};
}

std::string surge_obstacle(const k8s::PersistentVolumeClaim& claim) {
  if (claim.shared) return {};
  return fmt::format("only one node may mount PersistentVolumeClaim {}/{}", claim.ns, claim.name);
}

bool is_closed_though_healthy(const k8s::PodDisruptionBudget& budget) {
  return budget.disruptions_allowed <= 0 && budget.observed_generation >= budget.generation &&
         budget.disrupted_pods.empty() && budget.current_healthy <= budget.desired_healthy &&
         budget.current_healthy >= budget.expected_pods;
}

bool counts_other_controllers(const k8s::PodDisruptionBudget& budget, std::int32_t replicas) {
  const bool by_scale = !budget.max_unavailable.empty() || budget.min_available.ends_with('%');
  return by_scale && budget.expected_pods > replicas;
}

std::size_t surge_places(const Controller& deployment) {
  const std::int32_t replicas = deployment.replicas.value_or(1);
  return std::max<std::size_t>(1,
                               deployment.rollout ? resolved(deployment.rollout->max_surge, replicas).value_or(1) : 1);
}

const std::string* SurgeFacts::annotation_of(const std::string& ns) {
  const auto known = namespaces_.find(ns);
  if (known != namespaces_.end()) return &known->second;
  questions_.try_emplace(Question{ns, {}});
  return nullptr;
}

const std::string* SurgeFacts::obstacle_of(const Question& claim) {
  const auto known = claims_.find(claim);
  if (known != claims_.end()) return &known->second;
  questions_.try_emplace(claim);
  return nullptr;
}

std::optional<SurgeFacts::Question> SurgeFacts::next_question(TimePoint now) const {
  for (const auto& [question, open] : questions_)
    if (open.not_before <= now) return question;
  return std::nullopt;
}

void SurgeFacts::namespace_known(const std::string& ns, std::string annotation) {
  namespaces_[ns] = std::move(annotation);
  questions_.erase(Question{ns, {}});
}

void SurgeFacts::claim_known(const Question& claim, std::string obstacle) {
  claims_[claim] = std::move(obstacle);
  questions_.erase(claim);
}

void SurgeFacts::not_answered(const Question& question, const Error& error, TimePoint now) {
  Open& open = questions_[question];
  open.not_before = now + question_pause;
  const bool refused = k8s::is_forbidden(error) ? ++open.refusals >= refusals_that_count : !k8s::may_heal(error);
  if (!refused) return;
  const bool of_namespace = question.claim.empty();
  if (k8s::is_forbidden(error)) rights_[of_namespace ? "namespaces" : "persistentvolumeclaims"] = error.message();
  // An owner may have forbidden to surge these pods, so a namespace that may not be read counts as one that does.
  if (of_namespace) return namespace_known(question.ns, "false");
  claim_known(question,
              fmt::format("its PersistentVolumeClaim {} could not be read: {}", question.claim, error.message()));
}

TimePoint SurgeFacts::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [question, open] : questions_)
    if (open.not_before > now) next = std::min(next, open.not_before);
  return next;
}

SurgeJudge::Judgement SurgeJudge::judge_claims(const k8s::Pod& pod) {
  for (const std::string& claim : pod.claims) {
    // The claim of a generic ephemeral volume is the pod's own: its replacement gets another.
    if (std::find(pod.own_claims.begin(), pod.own_claims.end(), claim) != pod.own_claims.end()) continue;
    const std::string* obstacle = facts_.obstacle_of({pod.ns, claim});
    if (!obstacle) return {Plan::unknown, fmt::format("its PersistentVolumeClaim {} has been read", claim)};
    if (!obstacle->empty()) return {Plan::impossible, *obstacle};
  }
  return {Plan::surge};
}

SurgeJudge::Judgement SurgeJudge::judge(const k8s::Pod& pod, const ControllerGroup& group) {
  const Controller& controller = group.controller;
  // Evicting a pod that is not Ready takes no Ready pod away. Nothing replaces the pods of a controller that is gone.
  if (!pod.ready || controller.gone) return {};
  auto annotation = surge_wish(pod.annotations);
  if (!annotation) {
    const std::string* known = facts_.annotation_of(pod.ns);
    if (!known) return {Plan::unknown, fmt::format("namespace {} has been read", pod.ns)};
    annotation = *known;
  }
  if (*annotation == "false") return {};
  const Surge mode = guards_.surge;
  const bool wanted = *annotation == "true" || mode == Surge::all ||
                      (mode == Surge::single_replica && controller.replicas == 1) ||
                      (mode == Surge::closed_budget && budgets_.closed(pod));
  if (!wanted) return {};
  if (auto obstacle = surge_obstacle(pod, controller); !obstacle.empty())
    return {Plan::impossible, std::move(obstacle)};
  if (const std::int32_t replicas = controller.replicas.value_or(1); replicas <= 1) {
    if (!budgets_.visible() && !budgets_.forbidden()) return {Plan::unknown, "PodDisruptionBudgets can be read"};
    if (!budgets_.visible())
      return {Plan::impossible,
              "PodDisruptionBudgets cannot be seen, and one may count pods of other controllers, too"};
    if (const std::string budget = budgets_.shared(pod, replicas); !budget.empty())
      return {Plan::impossible,
              fmt::format("PodDisruptionBudget {} counts pods of other controllers, too, and would allow one more "
                          "disruption while the only pod of {} has no owner",
                          budget, controller.text())};
  }
  return judge_claims(pod);
}

}  // namespace haulout::drain
