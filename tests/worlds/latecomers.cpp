#include "tests/worlds/latecomers.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Latecomers {
 public:
  explicit Latecomers(GeneratedWorld& world) : world_(world), rng_(world.seed * 0x9e3779b97f4a7c15u + 31) {}

  void add() {
    if (!rng_.chance(40)) return;
    for (std::uint64_t i = pick(1, 2); i > 0; --i) group(fmt::format("late{}", i));
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }
  void tell(const std::string& what) { world_.oddities.push_back("late-" + what); }

  // The pods come one shortly after the other, so that some come before the drain knows their budget.
  void group(const std::string& app) {
    tell("pods");
    const std::string ns = rng_.chance(50) ? "ml" : "late";
    const std::uint64_t members = pick(1, 4);
    budget(app, ns, members);
    Duration when = world_.moment(rng_, seconds(40));
    for (std::uint64_t i = 0; i < members; ++i) {
      const std::string name = fmt::format("{}-{}", app, i);
      const bool relabelled = rng_.chance(25);
      come(when, ns, name, relabelled ? app + "-before" : app);
      if (relabelled) relabel(when + rng_.between(milliseconds(1), milliseconds(3000)), ns, name, app);
      when += rng_.chance(60) ? rng_.between(Duration(milliseconds(0)), Duration(milliseconds(300)))
                              : rng_.between(Duration(milliseconds(300)), Duration(seconds(12)));
    }
    world_.healed_after = std::max(world_.healed_after, when);
  }

  void budget(const std::string& app, const std::string& ns, std::uint64_t members) {
    Json spec = {{"selector", {{"matchLabels", {{"app", app}}}}}, {"minAvailable", pick(0, members)}};
    tell(spec["minAvailable"] == 0 ? "free" : "held");
    world_.objects.push_back(
        {{"kind", "PodDisruptionBudget"}, {"metadata", {{"name", app}, {"namespace", ns}}}, {"spec", spec}});
    world_.incidents.push_back({world_.moment(rng_, seconds(120)), "budget of late pods removed",
                                [ns, app](TestCluster& cluster) { cluster.remove("poddisruptionbudgets", ns, app); },
                                true});
  }

  // Each pod has a controller of its own: one that creates pods on the cordoned node again and again counts as pinned.
  void come(Duration when, const std::string& ns, const std::string& name, const std::string& app) {
    Json pod = {{"kind", "Pod"},
                {"metadata",
                 {{"name", name},
                  {"namespace", ns},
                  {"labels", {{"app", app}}},
                  {"annotations", {{"sim.haulout.dev/terminates-after", fmt::format("{}ms", pick(10, 8'000))}}},
                  {"ownerReferences",
                   {{{"apiVersion", "example.com/v1"},
                     {"kind", "Fleet"},
                     {"name", name},
                     {"uid", "uid-of-" + name},
                     {"controller", true}}}}}},
                {"spec", {{"nodeName", world_.node}, {"terminationGracePeriodSeconds", pick(0, 15)}}},
                {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    world_.incidents.push_back({when, "a pod with a budget of its own arrives late",
                                [pod = std::move(pod)](TestCluster& cluster) { cluster.create("pods", pod); }});
  }

  void relabel(Duration when, const std::string& ns, const std::string& name, const std::string& app) {
    tell("relabelled");
    world_.incidents.push_back(
        {when, "a late pod gets the labels of its budget", [ns, name, app](TestCluster& cluster) {
           cluster.patch("pods", ns, name, {{"metadata", {{"labels", {{"app", app}}}}}});
         }});
  }

  GeneratedWorld& world_;
  SeededRng rng_;
};

}  // namespace

void add_latecomers(GeneratedWorld& world) {
  Latecomers(world).add();
}

}  // namespace haulout::sim
