#include "audit/surge_advice.hpp"

#include "k8s/codec.hpp"

namespace haulout::audit {
namespace {

// Answers the question from the objects of the world.
void answer(const World& world, const drain::SurgeFacts::Question& question, drain::SurgeFacts& facts) {
  if (question.claim.empty()) {
    const sim::Object ns = world.store().get({"namespaces", "", question.ns});
    return facts.namespace_known(
        question.ns, ns ? sim::annotation(*ns, std::string(drain::surge_annotation).c_str()) : std::string());
  }
  const sim::Object claim = world.store().get({"persistentvolumeclaims", question.ns, question.claim});
  const auto decoded = claim ? k8s::decode<k8s::PersistentVolumeClaim>(claim->dump())
                             : Result<k8s::PersistentVolumeClaim>(Error(Errc::invalid, "it is not in the snapshot"));
  facts.claim_known(
      question, decoded ? drain::surge_obstacle(*decoded)
                        : "PersistentVolumeClaim " + question.ns + "/" + question.claim + " is not in the snapshot");
}

}  // namespace

drain::SurgeJudge::Judgement surge_of(const World& world, const WorldPod& pod, drain::Surge mode) {
  drain::Guards guards = world.drain.guards;
  guards.surge = mode;
  const k8s::PodDisruptionBudget* budget =
      pod.budgets.size() == 1 ? &world.budgets[pod.budgets.front()].budget : nullptr;
  drain::SurgeJudge judge(
      guards, {[] { return true; }, [] { return false; },
               [budget](const k8s::Pod&) { return budget && drain::is_closed_though_healthy(*budget); },
               [budget](const k8s::Pod&, std::int32_t replicas) {
                 return budget && drain::counts_other_controllers(*budget, replicas) ? budget->key() : std::string();
               }});
  drain::ControllerGroup group;
  group.controller = world.group_of(pod).controller;
  for (;;) {
    auto judgement = judge.judge(pod.pod, group);
    const auto question = judge.facts().next_question(TimePoint::max());
    if (judgement.plan != drain::SurgeJudge::Plan::unknown || !question) return judgement;
    answer(world, *question, judge.facts());
  }
}

}  // namespace haulout::audit
