// Audits a large cluster without rehearsals. Counts the work instead of the time: it grows with the number of objects.
#include <gmock/gmock.h>

#include "audit/findings.hpp"
#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

struct Work {
  std::uint64_t compared = 0;  // labels of a pod with a selector
  std::uint64_t listed = 0;    // objects of the store, after the world was made
};

// Audits `apps` services of three pods, each with a budget. All have a label in common, which each budget demands
// first.
Work work_for(int apps) {
  ACluster cluster;
  cluster.items.clear();
  for (const char* node : {"n1", "n2", "n3"}) {
    cluster.add_node(node, "100000");
    cluster.items.back()["status"]["allocatable"]["pods"] = "100000";
  }
  for (int i = 0; i < apps; ++i) {
    const std::string app = "app-" + std::to_string(i);
    cluster.add_deployment(app, 3);
    for (const char* node : {"n1", "n2", "n3"}) {
      cluster.add_pod(app + "-" + node, app, node);
      cluster.items.back()["metadata"]["labels"]["aaa-managed-by"] = "helm";
    }
    cluster.add_budget(app, {{"maxUnavailable", 1}}, 3, 2, 1);
    cluster.items.back()["spec"]["selector"]["matchLabels"]["aaa-managed-by"] = "helm";
  }
  auto world = make_world({.objects = cluster.items,
                           .now = ACluster::now(),
                           .drain = cluster.config.drain,
                           .assumptions = {},
                           .team_labels = {"team"}});
  if (!world) throw std::runtime_error(world.error().message());
  const std::uint64_t before = world->store().listed();
  Findings findings(*world);
  find_all(*world, findings);
  EXPECT_TRUE(findings.owners().empty());
  return {world->compared, world->store().listed() - before};
}

TEST(LargeWorld, TheWorkGrowsWithTheObjects) {
  const Work small = work_for(50), large = work_for(400);
  EXPECT_EQ(small.compared, 150U);
  EXPECT_EQ(large.compared, 1200U);
  EXPECT_LE(large.listed, small.listed * 8);
}

}  // namespace
}  // namespace haulout::audit
