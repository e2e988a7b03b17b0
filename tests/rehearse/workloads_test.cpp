// What the rehearsal of a fleet tells about the workloads: their worst moments, evictions and pods without room.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/rehearse/rehearsal_text.hpp"
#include "rehearse/comparison.hpp"
#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/stage.hpp"
#include "tests/rehearse/a_fleet.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Three nodes with two CPUs and one pod of a ReplicaSet each, and room for all of them on one node.
class WorkloadsTest : public ::testing::Test, protected AFleet {
 protected:
  WorkloadsTest() : AFleet("2") {}

  static const OwnerCourse& owner_of(const FleetRehearsal& rehearsal, const std::string& name) {
    for (const OwnerCourse& owner : rehearsal.owners)
      if (owner.owner == name) return owner;
    throw std::runtime_error("no owner " + name);
  }
  // Returns how many pods the drains have evicted.
  static std::size_t evicted_in(const FleetRehearsal& rehearsal) {
    const auto& rows = rehearsal.timeline.rows();
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.leaving; }));
  }
  static const OwnerCourse& web(const FleetRehearsal& rehearsal) { return owner_of(rehearsal, "shop/ReplicaSet/web"); }
};

TEST_F(WorkloadsTest, OneNodeAtATimeTakesOnePodAtATime) {
  const FleetRehearsal rehearsal = play();
  ASSERT_THAT(rehearsal.owners, SizeIs(1));
  const OwnerCourse& owner = web(rehearsal);
  EXPECT_EQ(owner.replicas, 3u);
  EXPECT_TRUE(owner.is_replaced);
  EXPECT_FALSE(owner.has_budget);
  EXPECT_EQ(owner.pods, 3u);
  EXPECT_EQ(owner.ready, 3u);
  EXPECT_LT(owner.least_ready, 3u);
  EXPECT_FALSE(is_harmed(owner));
  EXPECT_GT(owner.least_at, rehearsal.began);
  EXPECT_LT(owner.least_at, rehearsal.ended);
  EXPECT_EQ(owner.without_room, 0u);
  EXPECT_GE(owner.evictions, 3u) << "each node had a pod";
  EXPECT_EQ(owner.evictions, evicted_in(rehearsal));
  EXPECT_EQ(rehearsal.largest_pool, 3u);
}

TEST_F(WorkloadsTest, AllNodesAtATimeTakeAllPodsAndLeaveNoRoom) {
  input.config.max_unavailable = "3";
  const FleetRehearsal rehearsal = play();
  const OwnerCourse& owner = web(rehearsal);
  EXPECT_EQ(owner.least_ready, 0u);
  EXPECT_TRUE(is_harmed(owner));
  EXPECT_GE(owner.evictions, 3u) << "a pod that finds a node which is not cordoned yet is evicted again";
  EXPECT_EQ(owner.evictions, evicted_in(rehearsal));
  EXPECT_EQ(owner.without_room, 3u);
  EXPECT_GE(owner.longest_without_room, input.reboot_time);
  EXPECT_LE(owner.longest_without_room, input.reboot_time + 2min);
}

TEST_F(WorkloadsTest, ABudgetKeepsWhatItMust) {
  add_narrow_budget("web");
  input.config.max_unavailable = "3";
  const FleetRehearsal rehearsal = play();
  EXPECT_TRUE(web(rehearsal).has_budget);
  ASSERT_THAT(rehearsal.budgets, SizeIs(1));
  EXPECT_EQ(rehearsal.budgets[0].budget, "shop/narrow");
  EXPECT_EQ(rehearsal.budgets[0].desired, 2);
  EXPECT_EQ(rehearsal.budgets[0].healthy, 3);
  EXPECT_EQ(rehearsal.budgets[0].least_healthy, 2);
  EXPECT_EQ(web(rehearsal).least_ready, 2u);
}

// Pods that stay on their nodes are not Ready while these reboot, and no budget is asked.
TEST_F(WorkloadsTest, ARebootUnderPodsThatStayHarmsTheirBudget) {
  add_narrow_budget("web");
  input.config.drain.policy.rules = {drain::parse_pod_rule("kind:ReplicaSet=skip").value()};
  input.config.max_unavailable = "2";
  const FleetRehearsal rehearsal = play();
  ASSERT_THAT(rehearsal.budgets, SizeIs(1));
  EXPECT_LE(rehearsal.budgets[0].least_healthy, 1);
  EXPECT_GT(rehearsal.budgets[0].least_at, rehearsal.began);
  EXPECT_TRUE(is_harmed(rehearsal.budgets[0]));
  EXPECT_EQ(web(rehearsal).evictions, 0u);
  EXPECT_THAT(rehearsal.owners, SizeIs(1));
}

TEST_F(WorkloadsTest, ADeploymentIsTheOwnerOfItsReplicaSetsPods) {
  items.push_back(workload("Deployment", "front", {{"replicas", 3}}));
  item("web")["metadata"]["ownerReferences"] = {
      {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "front"}, {"uid", "front"}, {"controller", true}}};
  const FleetRehearsal rehearsal = play();
  ASSERT_THAT(rehearsal.owners, SizeIs(1));
  EXPECT_EQ(owner_of(rehearsal, "shop/Deployment/front").pods, 3u);
}

TEST_F(WorkloadsTest, WhoIsLeftOutAndWhoIsNotReplaced) {
  items.push_back(workload("DaemonSet", "logs", nlohmann::json::object()));
  items.push_back(pod("logs-1", "DaemonSet", "logs", "100m", "n1"));
  for (const char* name : {"job-1", "job-2"}) items.push_back(pod(name, "Job", "job", "100m", "n2"));
  items.push_back(pod("alone", "ReplicaSet", "web", "100m", "n3"));
  item("alone")["metadata"].erase("ownerReferences");
  item("alone")["metadata"]["labels"] = {{"app", "alone"}};
  const FleetRehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.owners, SizeIs(3));
  const OwnerCourse& job = owner_of(rehearsal, "shop/Job/job");
  EXPECT_EQ(job.replicas, 2u);
  EXPECT_EQ(job.evictions, 2u);
  EXPECT_EQ(job.least_ready, 0u);
  EXPECT_FALSE(is_harmed(job));
  EXPECT_EQ(owner_of(rehearsal, "shop/Pod/alone").replicas, 1u);
}

TEST_F(WorkloadsTest, APodThatHadNoRoomBeforeDoesNotCount) {
  item("web")["spec"]["replicas"] = 4;
  items.push_back(pod("large", "ReplicaSet", "web", "64", ""));
  item("large")["status"] = {{"phase", "Pending"}};
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(web(rehearsal).pods, 4u);
  EXPECT_EQ(web(rehearsal).ready, 3u);
  EXPECT_EQ(web(rehearsal).without_room, 0u);
}

// The pod may run on n1 only, so its replacement waits until that node is back.
TEST_F(WorkloadsTest, HowLongAPinnedPodWaits) {
  items.push_back(workload("StatefulSet", "db", {{"replicas", 1}}));
  item("db")["spec"]["template"]["spec"]["nodeSelector"] = {{"disk", "fast"}};
  item("n1")["metadata"]["labels"]["disk"] = "fast";
  items.push_back(pod("db-0", "StatefulSet", "db", "100m", "n1"));
  item("db-0")["spec"]["nodeSelector"] = {{"disk", "fast"}};
  const OwnerCourse db = owner_of(play(), "shop/StatefulSet/db");
  EXPECT_EQ(db.without_room, 1u);
  EXPECT_GE(db.longest_without_room, input.reboot_time);
  EXPECT_LE(db.longest_without_room, input.reboot_time + 2min);
  EXPECT_EQ(db.least_ready, 0u);
  EXPECT_FALSE(is_harmed(db)) << "it has one replica";
}

TEST_F(WorkloadsTest, EveryReportTellsTheEvictionsPerPod) {
  input.config.max_unavailable = "3";
  const FleetRehearsal rehearsal = play();
  const std::size_t evictions = evicted_in(rehearsal);
  EXPECT_THAT(cli::fleet_lines(rehearsal),
              Contains(fmt::format("evictions per pod: {0:.2f} ({1} evictions of 3 pods); the most: {0:.2f}, "
                                   "shop/ReplicaSet/web ({1} evictions of 3 pods)",
                                   static_cast<double>(evictions) / 3, evictions)));
  const auto report = nlohmann::json::parse(cli::fleet_json(rehearsal, input));
  EXPECT_EQ(report["evictions"]["evictions"], evictions);
  EXPECT_EQ(report["evictions"]["pods"], 3);
  EXPECT_EQ(report["evictions"]["worst"]["owner"], "shop/ReplicaSet/web");
  EXPECT_EQ(report["owners"][0]["leastReady"], 0);
  EXPECT_EQ(report["owners"][0]["harmed"], true);
  EXPECT_THAT(report["harmedBudgets"], IsEmpty());
}

// Rehearsals of objects that were read once are those of the snapshot itself.
TEST_F(WorkloadsTest, ASnapshotThatWasReadOnceIsRehearsedAlike) {
  add_narrow_budget("web");
  input.snapshot.stored = true;
  item("n1")["metadata"]["creationTimestamp"] = "2027-01-15T07:00:00Z";
  const std::string alone = cli::fleet_json(play(), input);
  EXPECT_THAT(alone, HasSubstr("the snapshot was taken at the newest time in it, 2027-01-15T07:00:00Z"));
  input.snapshot.documents = {{document()}};
  const auto objects = read_for_fleet(input.snapshot).value();
  EXPECT_THAT(input.snapshot.documents[0].text, IsEmpty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cli::fleet_json(rehearse_fleet(input, objects).value(), input), alone);
}

}  // namespace
}  // namespace haulout::rehearse
