#include <fmt/format.h>

#include <map>

#include "tests/worlds/world_generator.hpp"

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

std::string described(const sim::GeneratedWorld& world) {
  std::string result;
  for (const Json& object : world.objects) result += object.dump() + "\n";
  for (const auto& incident : world.incidents) result += fmt::format("{} {}\n", incident.after.count(), incident.what);
  for (const auto& rule : world.faults) result += fmt::format("{} {}\n", to_string(rule.fault.kind), rule.percent);
  return result;
}

TEST(WorldGenerator, TheSameSeedIsTheSameWorld) {
  EXPECT_EQ(described(sim::generate_world(3)), described(sim::generate_world(3)));
  EXPECT_NE(described(sim::generate_world(3)), described(sim::generate_world(4)));
}

TEST(WorldGenerator, SeedsDifferInWhatMatters) {
  std::size_t with_budget = 0, with_finalizer = 0, with_faults = 0, stateful = 0, daemons = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto world = sim::generate_world(seed);
    const std::string text = described(world);
    std::size_t pods = 0, nodes = 0;
    for (const Json& object : world.objects) {
      pods += object["kind"] == "Pod";
      nodes += object["kind"] == "Node";
    }
    EXPECT_GE(nodes, 2u) << "seed " << seed;
    EXPECT_LE(nodes, 6u) << "seed " << seed;
    EXPECT_GE(pods, 1u) << "seed " << seed;
    EXPECT_LE(pods, 61u + 3 * 4 + 4 + 3 * 5 + 3 * 6) << "seed " << seed
                                                     << ", with three groups of four pods that migrate, four of Jobs, "
                                                        "three Deployments of five, and three gangs of six";
    EXPECT_LE(world.healed_after, 5min) << "seed " << seed;
    with_budget += text.find("PodDisruptionBudget") != std::string::npos;
    with_finalizer += text.find("finalizer removed") != std::string::npos;
    with_faults += !world.faults.empty();
    stateful += text.find("StatefulSet") != std::string::npos;
    daemons += text.find("DaemonSet") != std::string::npos;
  }
  for (const std::size_t count : {with_budget, with_finalizer, with_faults, stateful, daemons}) {
    EXPECT_GT(count, 20u);
    EXPECT_LT(count, 200u);
  }
}

TEST(WorldGenerator, Generation13HasLatecomers) {
  std::map<std::string, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const std::string& oddity : sim::generate_world(seed).oddities) ++seen[oddity];
    const std::string before = described(sim::generate_world(seed, {.generation = 12}));
    EXPECT_EQ(before.find("a budget of its own"), std::string::npos);
  }
  for (const char* oddity : {"pods", "free", "held", "relabelled"})
    EXPECT_GT(seen["late-" + std::string(oddity)], 20u) << oddity;
}

TEST(WorldGenerator, Generation11HasGangs) {
  std::map<std::string, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const std::string& oddity : sim::generate_world(seed).oddities) ++seen[oddity];
    const std::string before = described(sim::generate_world(seed, {.generation = 10}));
    for (const char* gang : {"jobset.sigs.k8s.io", "schedulingGroup", "leaderworkerset.sigs.k8s.io"})
      EXPECT_EQ(before.find(gang), std::string::npos);
  }
  for (const char* oddity :
       {"pod-group", "job-set", "leader-worker-set", "both", "starts-anew", "half-finished", "deleted", "late"})
    EXPECT_GT(seen["gang-" + std::string(oddity)], 20u) << oddity;
}

TEST(WorldGenerator, Generation10HasWhatSurgeMeets) {
  std::map<std::string, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const std::string& oddity : sim::generate_world(seed).oddities) ++seen[oddity];
    EXPECT_EQ(described(sim::generate_world(seed, {.generation = 9})).find("pod-template-hash"), std::string::npos);
  }
  for (const char* oddity : {"recreate",
                             "termination-complete",
                             "host-port",
                             "claim-ReadWriteOnce",
                             "claim-ReadWriteMany",
                             "never-ready",
                             "no-room",
                             "quota",
                             "left-over",
                             "scaled",
                             "deleted",
                             "label-given-back",
                             "left-half-back",
                             "left-elsewhere",
                             "foreign-mark",
                             "copied-mark",
                             "garbage-mark",
                             "left-orphan",
                             "rollout",
                             "old-set-deleted",
                             "annotator",
                             "webhook-restores-label",
                             "webhook-drops-mark",
                             "budget-of-several",
                             "degraded",
                             "deletion-cost",
                             "claim-missing"})
    EXPECT_GT(seen["surge-" + std::string(oddity)], 3u) << oddity;
}

// Checks the promise of `healed_after`: evicts all pods on the node, repeatedly, over a connection without faults.
class GeneratedWorldTest : public SimTest, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(GeneratedWorldTest, CanBeDrainedOnceHealed) {
  const auto world = sim::generate_world(GetParam());
  stage(world, cluster, clock.now());
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(world.healed_after + 1s);
    cluster.cordon(world.node);
    const TimePoint limit = clock.now() + 1h;
    for (std::string left = "?"; !left.empty() && clock.now() < limit;) {
      left.clear();
      for (const Json& pod : cluster.all("pods")) {
        const std::string ns = sim::ns_of(pod), name = sim::name_of(pod);
        if (sim::text(pod, "/spec/nodeName") != world.node || ns == "kube-system") continue;
        left += ns + "/" + name + " ";
        if (!sim::terminating(pod)) co_await evict(ns, name);
      }
      co_await pass(5s);
      if (clock.now() >= limit) ADD_FAILURE() << "seed " << GetParam() << ": left " << left;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, GeneratedWorldTest, ::testing::Range<std::uint64_t>(0, 40));

}  // namespace
}  // namespace haulout::testing
