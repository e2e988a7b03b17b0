#include "tests/worlds/work.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

using std::chrono::seconds;

constexpr const char* drain_label = "cluster.x-k8s.io/drain";

// Adds a pod of a Job that does not exist, so nothing creates the pod again.
void add_job_pod(GeneratedWorld& world, SeededRng& rng, std::uint64_t number) {
  const std::string name = fmt::format("work-{}", number);
  Json labels = {{"app", "work"}};
  if (rng.chance(35)) labels[drain_label] = rng.chance(60) ? "wait-completed" : "skip";
  const auto grace = rng.between(std::uint64_t{1}, std::uint64_t{40});
  world.objects.push_back(
      {{"kind", "Pod"},
       {"metadata",
        {{"name", name},
         {"namespace", "batch"},
         {"labels", labels},
         {"ownerReferences",
          {{{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"name", "work"},
            {"uid", "uid-work"},
            {"controller", true}}}}}},
       {"spec", {{"nodeName", world.node}, {"terminationGracePeriodSeconds", grace}}},
       {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  const Duration when = world.moment(rng, seconds(100));
  world.incidents.push_back(
      {when, "pod of a Job has finished",
       [name](TestCluster& cluster) {
         cluster.patch(
             "pods", "batch", name,
             {{"status", {{"phase", "Succeeded"}, {"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}});
       },
       true});
}

}  // namespace

void add_work(GeneratedWorld& world) {
  SeededRng rng(world.seed * 0x9e3779b97f4a7c15u + 19);
  if (!rng.chance(50)) return;
  world.oddities.emplace_back("work");
  for (std::uint64_t i = rng.between(std::uint64_t{1}, std::uint64_t{4}); i > 0; --i) add_job_pod(world, rng, i);
}

}  // namespace haulout::sim
