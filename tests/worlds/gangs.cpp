#include "tests/worlds/gangs.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

using std::chrono::seconds;

enum class Way { pod_group, job_set, leader_worker_set, job_set_with_pod_group };

struct PlannedGang {
  std::string name;
  std::string app;
  Way way = Way::pod_group;
  std::uint64_t members = 1;
  bool starts_anew = false;  // some of its pods are left over from an earlier start
};

class Gangs {
 public:
  Gangs(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world), options_(options), rng_(world.seed * 0x9e3779b97f4a7c15u + 23) {
    for (const Json& object : world_.objects)
      if (text(object, "/kind") == "Node") nodes_.push_back(name_of(object));
  }

  void add() {
    if (!rng_.chance(70)) return;
    for (std::uint64_t i = pick(1, 3); i > 0; --i) gang(i);
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }
  void tell(const std::string& what) { world_.oddities.push_back("gang-" + what); }

  void gang(std::uint64_t number) {
    static constexpr std::pair<Way, const char*> ways[] = {{Way::pod_group, "pod-group"},
                                                           {Way::job_set, "job-set"},
                                                           {Way::leader_worker_set, "leader-worker-set"},
                                                           {Way::job_set_with_pod_group, "both"}};
    const auto [way, what] = ways[pick(0, std::size(ways) - 1)];
    tell(what);
    PlannedGang one{fmt::format("run{}", number), fmt::format("gang{}", number), way, pick(1, 5), rng_.chance(15)};
    if (one.starts_anew) tell("starts-anew");
    for (std::uint64_t i = 0; i < one.members; ++i) {
      // Most have a member on the node to drain, and some lie on it wholly.
      const bool here = i == 0 || rng_.chance(50);
      Json pod =
          member(one, fmt::format("{}-{}", one.name, i), here ? world_.node : nodes_[pick(0, nodes_.size() - 1)]);
      if (i > 0 && rng_.chance(12)) {
        tell("half-finished");
        pod["status"] = {{"phase", rng_.chance(70) ? "Succeeded" : "Failed"}};
      } else {
        finishes(name_of(pod));
      }
      world_.objects.push_back(std::move(pod));
      if (options_.other_people && i > 0 && rng_.chance(10)) deleted(one, i);
    }
    if (one.starts_anew) left_over(one);
    if (rng_.chance(20)) late(one);
    if (rng_.chance(35)) budget(one);
  }

  Json member(const PlannedGang& one, const std::string& name, const std::string& node) {
    Json labels = {{"app", one.app}}, annotations = Json::object();
    Json spec = {{"nodeName", node}, {"terminationGracePeriodSeconds", pick(0, 15)}};
    if (one.way == Way::pod_group || one.way == Way::job_set_with_pod_group)
      spec["schedulingGroup"] = {{"podGroupName", one.name}};
    if (one.way == Way::job_set || one.way == Way::job_set_with_pod_group)
      labels["jobset.sigs.k8s.io/jobset-name"] = "set-" + one.name;
    if (one.way == Way::leader_worker_set) {
      labels["leaderworkerset.sigs.k8s.io/name"] = "serve";
      labels["leaderworkerset.sigs.k8s.io/group-index"] = one.name;
      annotations["leaderworkerset.sigs.k8s.io/size"] = fmt::format("{}", one.members);
    }
    if (rng_.chance(25)) spec["priority"] = pick(0, 2) * 1000;
    if (rng_.chance(10)) spec["volumes"] = {{{"name", "scratch"}, {"emptyDir", Json::object()}}};
    if (rng_.chance(15)) annotations["haulout.dev/drain-order"] = fmt::format("{}", static_cast<int>(pick(0, 4)) - 2);
    if (rng_.chance(50)) annotations["sim.haulout.dev/terminates-after"] = fmt::format("{}ms", pick(10, 20'000));
    // It ends when the member has finished.
    if (rng_.chance(10)) annotations["karpenter.sh/do-not-disrupt"] = "true";
    const bool of_job = rng_.chance(30);
    return {{"kind", "Pod"},
            {"metadata",
             {{"name", name},
              {"namespace", "ml"},
              {"labels", labels},
              {"annotations", annotations},
              {"ownerReferences",
               {{{"apiVersion", of_job ? "batch/v1" : "example.com/v1"},
                 {"kind", of_job ? "Job" : "Training"},
                 {"name", one.name},
                 {"uid", "uid-of-" + one.name},
                 {"controller", true}}}}}},
            {"spec", spec},
            {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
  }

  void finishes(const std::string& name, Duration not_before = {}) {
    const Duration when = not_before + world_.moment(rng_, seconds(120));
    world_.healed_after = std::max(world_.healed_after, when);
    world_.incidents.push_back(
        {when, "member of a gang has finished",
         [name](TestCluster& cluster) {
           cluster.patch(
               "pods", "ml", name,
               {{"status", {{"phase", "Succeeded"}, {"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}});
         },
         true});
  }

  void deleted(const PlannedGang& one, std::uint64_t member) {
    tell("deleted");
    world_.incidents.push_back(
        {world_.moment(rng_, seconds(60)), "member of a gang deleted",
         [name = fmt::format("{}-{}", one.name, member), forced = rng_.chance(25)](TestCluster& cluster) {
           if (forced)
             cluster.remove("pods", "ml", name);
           else
             cluster.delete_gracefully("pods", "ml", name);
         }});
  }

  // A pod of an earlier start that does not end, because a finalizer keeps it.
  void left_over(const PlannedGang& one) {
    const std::string name = one.name + "-before";
    Json pod = member(one, name, world_.node);
    pod["metadata"]["finalizers"] = {"example.com/hold"};
    world_.objects.push_back(std::move(pod));
    world_.incidents.push_back({Duration::zero(), "an earlier start of a gang ends",
                                [name](TestCluster& cluster) { cluster.delete_gracefully("pods", "ml", name); }});
    world_.incidents.push_back(
        {world_.moment(rng_, seconds(120)), "finalizer of a member removed",
         [name](TestCluster& cluster) { cluster.patch("pods", "ml", name, {{"metadata", {{"finalizers", nullptr}}}}); },
         true});
  }

  void late(const PlannedGang& one) {
    tell("late");
    const Duration when = world_.moment(rng_, seconds(40));
    Json pod = member(one, one.name + "-late", world_.node);
    world_.incidents.push_back({when, "a member of a gang arrives late",
                                [pod = std::move(pod)](TestCluster& cluster) { cluster.create("pods", pod); }});
    finishes(one.name + "-late", when);
  }

  void budget(const PlannedGang& one) {
    const std::string name = one.app;
    Json spec = {{"selector", {{"matchLabels", {{"app", one.app}}}}}};
    spec[rng_.chance(60) ? "maxUnavailable" : "minAvailable"] = rng_.chance(60) ? 0 : 1;
    world_.objects.push_back(
        {{"kind", "PodDisruptionBudget"}, {"metadata", {{"name", name}, {"namespace", "ml"}}}, {"spec", spec}});
    world_.incidents.push_back({world_.moment(rng_, seconds(150)), "budget of a gang removed",
                                [name](TestCluster& cluster) { cluster.remove("poddisruptionbudgets", "ml", name); },
                                true});
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_;
  std::vector<std::string> nodes_;
};

}  // namespace

void add_gangs(GeneratedWorld& world, const GeneratorOptions& options) {
  Gangs(world, options).add();
}

}  // namespace haulout::sim
