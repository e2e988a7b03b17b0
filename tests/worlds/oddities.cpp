#include "tests/worlds/oddities.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

using std::chrono::seconds;

class Oddities {
 public:
  Oddities(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world), options_(options), rng_(world.seed * 0x9e3779b97f4a7c15u + 17) {}

  void add() {
    if (rng_.chance(25)) odd_claims();
    if (options_.other_people && rng_.chance(40)) delete_patiently();
    if (options_.faults && !world_.as_kubelet && rng_.chance(30)) ignored_selectors();
  }

 private:
  // Adds a PersistentVolume whose claimRef a person has edited to bind the volume again, and which is still attached.
  void odd_claims() {
    world_.oddities.emplace_back("odd-claims");
    const char* const phases[] = {"Available", "Released", "Failed"};
    const Json claims[] = {{{"name", "data-odd"}}, {{"namespace", "team-1"}}, Json::object()};
    const std::string name = fmt::format("pv-odd-{}", rng_.between(std::uint64_t{1}, std::uint64_t{9}));
    world_.objects.push_back({{"kind", "PersistentVolume"},
                              {"metadata", {{"name", name}}},
                              {"spec",
                               {{"accessModes", {"ReadWriteOnce"}},
                                {"csi", {{"driver", "csi.example.com"}, {"volumeHandle", "handle-" + name}}},
                                {"claimRef", claims[rng_.between(std::uint64_t{0}, std::uint64_t{2})]}}},
                              {"status", {{"phase", phases[rng_.between(std::uint64_t{0}, std::uint64_t{2})]}}}});
    world_.objects.push_back(
        {{"kind", "VolumeAttachment"},
         {"metadata", {{"name", "csi-" + name}}},
         {"spec",
          {{"attacher", "csi.example.com"}, {"nodeName", world_.node}, {"source", {{"persistentVolumeName", name}}}}},
         {"status", {{"attached", true}}}});
  }

  // Deletes pods with a grace period of 600 s. They end after their own `terminates-after`, or earlier if a later
  // request shortens the grace period.
  void delete_patiently() {
    bool deletes = false;
    for (const Json& object : world_.objects) {
      const bool ends = !annotation(object, "sim.haulout.dev/terminates-after").empty();
      if (text(object, "/kind") != "Pod" || text(object, "/spec/nodeName") != world_.node || !ends) continue;
      if (!annotation(object, "kubernetes.io/config.mirror").empty() || !rng_.chance(15)) continue;
      if (!deletes) world_.oddities.emplace_back("deleted-with-patience");
      deletes = true;
      const Duration when = rng_.chance(60) ? Duration::zero() : rng_.between(Duration::zero(), Duration(seconds(20)));
      world_.incidents.push_back({when, "pod deleted with ten minutes to go",
                                  [ns = ns_of(object), name = name_of(object)](TestCluster& cluster) {
                                    cluster.delete_gracefully("pods", ns, name, 600);
                                  }});
    }
  }

  void ignored_selectors() {
    world_.oddities.emplace_back("selectors-ignored");
    FaultRule rule;
    rule.verb = rng_.chance(60) ? "list" : "watch";
    rule.resource = rng_.chance(80) ? "pods" : "nodes";
    rule.percent = rng_.chance(50) ? 100 : 30;
    rule.until = TimePoint{} + world_.moment(rng_, seconds(90));
    rule.fault.kind = FaultKind::unselected;
    world_.faults.push_back(std::move(rule));
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_;
};

}  // namespace

void add_oddities(GeneratedWorld& world, const GeneratorOptions& options) {
  Oddities(world, options).add();
}

}  // namespace haulout::sim
