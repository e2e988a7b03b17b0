#include "tests/worlds/responders.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// A responder that falls silent has 20 minutes by the API. The drain waits a little longer.
constexpr Duration silence = minutes(22);

class Responders {
 public:
  explicit Responders(GeneratedWorld& world) : world_(world), rng_(world.seed * 0x9e3779b97f4a7c15u + 26) {}

  void add() {
    if (!rng_.chance(60)) return;
    const bool served = rng_.chance(80), controlled = rng_.chance(75);
    world_.oddities.push_back(!served ? "responders-unserved" : controlled ? "responders" : "responders-uncontrolled");
    world_.incidents.push_back(
        {Duration::zero(), "EvictionRequests are served or not", [served, controlled](TestCluster& cluster) {
           cluster.switches().eviction_requests = served;
           cluster.switches().eviction_request_controller = controlled;
         }});
    for (std::uint64_t i = pick(1, 4); i > 0; --i) pod(fmt::format("asked-{}", i));
    if (rng_.chance(40)) budget();
    if (rng_.chance(25)) people();
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }

  std::string behaviour() {
    const std::uint64_t time = pick(1, 60);
    switch (pick(0, 4)) {
      case 0: return "silent";
      case 1: return fmt::format("declines {}s", time);
      case 2: return fmt::format("stops {}s", time);
      default: return fmt::format("moves {}s", time);
    }
  }

  void pod(const std::string& name) {
    Json responders = Json::array();
    std::string behaviours;
    const std::uint64_t count = pick(1, 3);
    for (std::uint64_t i = 0; i < count; ++i) {
      responders.push_back({{"name", fmt::format("acme.io/responder-{}", i)}, {"priority", 10'000 - 100 * i}});
      behaviours += (i == 0 ? "" : ",") + behaviour();
    }
    world_.responders_take =
        std::max(world_.responders_take, static_cast<Duration::rep>(count) * (silence + minutes(3)) + minutes(5));
    world_.objects.push_back(
        {{"kind", "Pod"},
         {"metadata",
          {{"name", name},
           {"namespace", "team-1"},
           {"labels", {{"app", "asked"}}},
           {"annotations", {{"sim.haulout.dev/responders", behaviours}}},
           {"ownerReferences",
            {{{"apiVersion", "acme.io/v1"},
              {"kind", "Machine"},
              {"name", name},
              {"uid", "uid-of-" + name},
              {"controller", true}}}}}},
         {"spec",
          {{"terminationGracePeriodSeconds", 5},
           {"containers", {{{"name", "app"}, {"image", "example.com/app:1"}}}},
           {"nodeName", rng_.chance(85) ? world_.node : std::string("n2")},
           {"evictionResponders", responders}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  void budget() {
    world_.objects.push_back({{"kind", "PodDisruptionBudget"},
                              {"metadata", {{"name", "asked"}, {"namespace", "team-1"}}},
                              {"spec", {{"selector", {{"matchLabels", {{"app", "asked"}}}}}, {"maxUnavailable", 0}}}});
    world_.incidents.push_back({world_.moment(rng_, seconds(150)), "budget of pods with responders removed",
                                [](TestCluster& cluster) { cluster.remove("poddisruptionbudgets", "team-1", "asked"); },
                                true});
  }

  void people() {
    world_.incidents.push_back(
        {world_.moment(rng_, seconds(90)), "EvictionRequests deleted by a person", [](TestCluster& cluster) {
           for (const Json& request : cluster.all("evictionrequests"))
             cluster.remove("evictionrequests", ns_of(request), name_of(request));
         }});
  }

  GeneratedWorld& world_;
  SeededRng rng_;
};

}  // namespace

void add_responders(GeneratedWorld& world) {
  Responders(world).add();
}

}  // namespace haulout::sim
