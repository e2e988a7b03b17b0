// Tests the audit as a whole: the rehearsal of each node, its verdict and its culprits, and the baseline.
#include "audit/audit.hpp"

#include <gmock/gmock.h>

#include "audit/node_rehearsals.hpp"
#include "audit/world.hpp"
#include "sim/loader.hpp"
#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

AuditInput rehearsed(const ACluster& cluster, std::size_t at_most = 100) {
  AuditInput input = cluster.input();
  input.rehearse_at_most = at_most;
  return input;
}

const NodeResult& node(const Report& report, const std::string& name) {
  for (const NodeResult& each : report.nodes)
    if (each.name == name) return each;
  throw std::runtime_error("no node " + name);
}

TEST(Audit, EachNodeIsDrainedByItself) {
  const Report report = audited(rehearsed(ACluster()));
  ASSERT_THAT(report.nodes, SizeIs(2));
  for (const NodeResult& each : report.nodes) {
    EXPECT_EQ(each.verdict, Verdict::drains) << each.name;
    EXPECT_TRUE(each.took);
    EXPECT_THAT(each.timeline, SizeIs(1));
    EXPECT_TRUE(each.timeline.front().gone);
    EXPECT_EQ(each.timeline.front().owner, "shop/Deployment/web");
    EXPECT_EQ(each.pool, "default");
  }
  EXPECT_EQ(report.pods, 2U);
  EXPECT_EQ(report.owners_in_all, 1U);
  EXPECT_THAT(report.owners, IsEmpty());
}

TEST(Audit, EveryPodThatIsLeftIsACulprit) {
  ACluster cluster;
  cluster.add_pod("web-c", "web", "n1");
  cluster.item("Deployment", "web")["spec"]["replicas"] = 3;
  cluster.item("ReplicaSet", "web-1")["spec"]["replicas"] = 3;
  cluster.remove("PodDisruptionBudget", "web");
  cluster.add_budget("web", {{"maxUnavailable", 0}}, 3, 3, 0);
  cluster.config.drain.timeout = std::chrono::minutes(10);
  const Report report = audited(rehearsed(cluster));
  EXPECT_EQ(node(report, "n1").verdict, Verdict::blocked);
  std::vector<std::string> pods;
  for (const Culprit& culprit : node(report, "n1").blocked_by) {
    pods.push_back(culprit.pod);
    EXPECT_EQ(culprit.owner, "shop/Deployment/web");
    EXPECT_EQ(culprit.reason, "BlockedByBudget");
  }
  EXPECT_THAT(pods, ElementsAre("shop/web-a", "shop/web-c"));
  EXPECT_FALSE(node(report, "n1").took);
  EXPECT_THAT(brief(report), ElementsAre("blocks BudgetNeverOpens shop/Deployment/web"));
}

TEST(Audit, ACulpritWithoutAStaticFindingGetsOne) {
  ACluster cluster;
  cluster.config.drain.policy.rules = {*drain::parse_pod_rule("app=web=wait-completed")};
  cluster.config.drain.timeout = std::chrono::minutes(10);
  const Report report = audited(rehearsed(cluster));
  EXPECT_EQ(report.count(Verdict::blocked), 2U);
  EXPECT_THAT(brief(report), Contains(HasSubstr("blocks")));
}

TEST(Audit, APodThatOnlyNeedsMoreTimeSaysSo) {
  ACluster cluster;
  cluster.item("Pod", "web-a")["spec"]["terminationGracePeriodSeconds"] = 600;
  cluster.config.drain.timeout = std::chrono::minutes(1);
  AuditInput input = rehearsed(cluster);
  input.assumptions.terminate_within = std::chrono::minutes(10);
  const Report report = audited(std::move(input));
  ASSERT_THAT(node(report, "n1").blocked_by, SizeIs(1));
  const Culprit& culprit = node(report, "n1").blocked_by.front();
  EXPECT_EQ(culprit.pod, "shop/web-a");
  EXPECT_EQ(culprit.reason, "Terminating");
  EXPECT_THAT(culprit.text, HasSubstr("the deadline passed"));
  EXPECT_THAT(culprit.text, ::testing::EndsWith(": it still terminates"));
}

TEST(Audit, PodsThatFindNoRoomTogether) {
  ACluster cluster;
  for (const char* pod : {"web-a", "web-b"})
    cluster.item("Pod", pod)["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3";
  for (const char* kind : {"Deployment", "ReplicaSet"})
    cluster.item(kind, kind == std::string("Deployment")
                           ? "web"
                           : "web-1")["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] =
        "3";
  const Report report = audited(rehearsed(cluster));
  EXPECT_EQ(node(report, "n1").verdict, Verdict::drains_without_room);
  EXPECT_THAT(node(report, "n1").without_room, SizeIs(1));
}

// One finding says it, and the node's result names the pod.
TEST(Audit, APodWhoseDiskStaysBehindIsNotSaidToLackRoom) {
  ACluster cluster;
  cluster.add_node("n3");
  cluster.add_stateful_set("db", 2);
  for (const char* pod : {"db-0", "db-1"}) {
    cluster.add_pod(pod, "db", "n3", "StatefulSet");
    cluster.give_local_volume(pod, "n3");
  }
  cluster.item("StatefulSet", "db")["spec"]["volumeClaimTemplates"] = {{{"metadata", {{"name", "data"}}}}};
  const Report report = audited(rehearsed(cluster));
  EXPECT_THAT(brief(report), Contains("risk VolumeOnOneNode shop/StatefulSet/db"));
  EXPECT_THAT(brief(report), Not(Contains(HasSubstr("NoRoom"))));
  EXPECT_EQ(node(report, "n3").verdict, Verdict::drains_without_room);
  EXPECT_THAT(node(report, "n3").without_room, Contains("shop/db-0"));
}

TEST(Audit, TheWorstNodesAreRehearsedFirst) {
  ACluster cluster;
  cluster.add_node("n0");
  cluster.add_pod("bare", "bare", "n2", "");
  const Report report = audited(rehearsed(cluster, 1));
  EXPECT_EQ(node(report, "n0").verdict, Verdict::not_rehearsed);
  EXPECT_EQ(node(report, "n1").verdict, Verdict::not_rehearsed);
  EXPECT_EQ(node(report, "n2").verdict, Verdict::drains);
}

TEST(Audit, WithoutRehearsalAFindingThatBlocksStillBlocksItsNodes) {
  ACluster cluster;
  cluster.add_node("n3");
  cluster.add_budget("web", {{"maxUnavailable", 1}}, 2, 1, 1, "also");
  const Report report = audited(cluster.input());
  EXPECT_EQ(node(report, "n1").verdict, Verdict::blocked);
  ASSERT_THAT(node(report, "n1").blocked_by, SizeIs(1));
  EXPECT_EQ(node(report, "n1").blocked_by.front().pod, "shop/web-a");
  EXPECT_EQ(node(report, "n1").blocked_by.front().reason, "TwoBudgets");
  EXPECT_EQ(node(report, "n3").verdict, Verdict::not_rehearsed);
}

TEST(Audit, TheBaselineHidesWhatItHas) {
  ACluster cluster;
  cluster.add_pod("bare", "bare", "n1", "");
  const Report before = audited(cluster.input());
  cluster.add_pod("other", "other", "n1", "");
  Report after = audited(cluster.input());
  const std::string key = before.owners.front().findings.front().key;
  Report worse = after;
  forget_known(after, {{key, Severity::risk}});
  EXPECT_THAT(brief(after), ElementsAre("risk UnmanagedPod shop/Pod/other"));
  EXPECT_EQ(after.known, 1U);
  forget_known(worse, {{key, Severity::note}});
  EXPECT_EQ(worse.known, 0U) << "the finding is worse than in the baseline";
}

World world_of(const ACluster& cluster) {
  std::vector<sim::Json> objects = cluster.items;
  auto world = make_world({.objects = std::move(objects),
                           .now = ACluster::now(),
                           .drain = cluster.config.drain,
                           .assumptions = {},
                           .team_labels = {}});
  if (!world) throw std::runtime_error(world.error().message());
  return *std::move(world);
}

std::size_t count(const std::vector<sim::Json>& objects, const char* kind) {
  return static_cast<std::size_t>(
      std::ranges::count_if(objects, [&](const sim::Json& object) { return object["kind"] == kind; }));
}

// The pods that do not matter are left out, and their requests are taken off their nodes.
TEST(Audit, TheWorldOfANodeHasWhatItsDrainNeeds) {
  ACluster cluster;
  cluster.add_deployment("far", 2);
  for (const char* pod : {"far-a", "far-b"}) cluster.add_pod(pod, "far", "n2");
  cluster.add_budget("far", {{"maxUnavailable", 1}}, 2, 1, 1);
  const std::vector<sim::Json> objects = world_for(world_of(cluster), "n1");
  EXPECT_EQ(count(objects, "Node"), 2U);
  EXPECT_EQ(count(objects, "Pod"), 2U);  // web-a, and web-b of the same owner
  EXPECT_EQ(count(objects, "Deployment"), 1U);
  EXPECT_EQ(count(objects, "ReplicaSet"), 1U);
  EXPECT_EQ(count(objects, "PodDisruptionBudget"), 1U);
  for (const sim::Json& object : objects)
    if (object["kind"] == "Node" && object["metadata"]["name"] == "n2") {
      EXPECT_EQ(object["status"]["allocatable"]["cpu"], "3000m");
      EXPECT_EQ(object["status"]["allocatable"]["pods"], "108000m");
    }
}

TEST(Audit, ADaemonSetStaysInTheWorldOfANode) {
  ACluster cluster;
  cluster.add(ACluster::object(
      "apps/v1", "DaemonSet", "logs",
      {{"selector", {{"matchLabels", {{"app", "logs"}}}}},
       {"template", {{"metadata", {{"labels", {{"app", "logs"}}}}}, {"spec", ACluster::pod_spec()}}}}));
  cluster.add_pod("logs-1", "logs", "n1", "DaemonSet");
  cluster.add_pod("logs-2", "logs", "n2", "DaemonSet");
  const std::vector<sim::Json> objects = world_for(world_of(cluster), "n1");
  EXPECT_EQ(count(objects, "DaemonSet"), 1U);
  EXPECT_EQ(count(objects, "Pod"), 3U);  // without logs-2
  const Report report = audited(rehearsed(cluster));
  EXPECT_EQ(report.count(Verdict::drains), 2U);
}

}  // namespace
}  // namespace haulout::audit
