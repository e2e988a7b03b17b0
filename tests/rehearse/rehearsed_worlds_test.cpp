// Tests properties of real clusters that affect a drain, and how a rehearsal treats them.
#include <algorithm>

#include "k8s/codec.hpp"
#include "tests/rehearse/rehearsal_fixture.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

TEST_F(RehearsalTest, APodOfARunningJobLeaves) {
  items.push_back(pod("report-x", "Job", "report", "100m"));
  items.back()["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1";
  items.back()["metadata"]["finalizers"] = {"batch.kubernetes.io/job-tracking"};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_LE(rehearsal.took, 27s);
}

TEST_F(RehearsalTest, NoPodEndsOnANodeWithoutAKubelet) {
  silence("n1");
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::blocked);
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("pod shop/web-a would still be there"), HasSubstr("kubelet")));
  EXPECT_THAT(
      rehearsal.assumed,
      Contains(
          "a node whose Ready condition is Unknown has no running kubelet, so no pod ends or starts there: node n1"));
}

TEST_F(RehearsalTest, WhatADeadNodeHasIsNotSaidToBecomeReady) {
  add_node("n3", "2");
  silence("n3");
  for (const char* node : {"n1", "n3"}) {
    const std::string on = std::string("-on-") + node;
    items.push_back(pod("early" + on, "ReplicaSet", "web", "100m", node));
    items.back()["status"] = {{"phase", "Pending"}};
    items.push_back(pod("ill" + on, "ReplicaSet", "web", "100m", node));
    items.back()["status"]["conditions"] = {{{"type", "Ready"}, {"status", "False"}}};
  }
  const Rehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.assumed, Contains(EndsWith("become Ready: shop/early-on-n1")));
  EXPECT_THAT(rehearsal.assumed, Contains(EndsWith("but their replacements do: shop/ill-on-n1")));
}

TEST_F(RehearsalTest, ADeadNodeIsNoRefugeAndHoldsNobodyUp) {
  add_node("n3", "2");
  silence("n3");
  items.push_back(pod("web-d", "ReplicaSet", "web", "500m", "n3"));
  item("web")["spec"]["replicas"] = 4;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
}

// The API server writes default requests into pods, but not into pod templates. So a replacement requests what its pod
// requests.
TEST_F(RehearsalTest, ReplacementsAskForWhatTheirPodsDo) {
  item("n2")["status"]["allocatable"]["cpu"] = "1";
  item("web")["spec"]["template"]["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "500m"}}}};
  EXPECT_THAT(play().no_room, SizeIs(2)) << "beside the DaemonSet's pod there is room for one";
}

// If a pod's controller is not in the snapshot, the status of its budget says how many pods it wants.
TEST_F(RehearsalTest, ABudgetOverPodsOfAnotherControllerExpectsWhatItsStatusSays) {
  struct Row {
    const char* what;
    const char* kind;
    Json status;
    drain::Outcome outcome;
  };
  const Json failed = {{"expectedPods", 0},
                       {"conditions", {{{"type", "DisruptionAllowed"}, {"reason", "SyncFailed"}}}}};
  const Row table[] = {
      {"a custom resource", "Broker", {{"expectedPods", 3}}, drain::Outcome::drained},
      {"a ReplicaSet of no snapshot", "ReplicaSet", {{"expectedPods", 3}}, drain::Outcome::drained},
      {"without a scale", "Broker", failed, drain::Outcome::blocked},
      {"never seen", "Broker", Json::object(), drain::Outcome::blocked},
      {"too few of them", "Broker", {{"expectedPods", 5}}, drain::Outcome::blocked},
  };
  input.drain.timeout = 10min;
  const Json before = items;
  for (const Row& row : table) {
    items = before;
    items.push_back(pod("a", row.kind, "mq", "100m", "n1"));
    for (const char* name : {"b", "c"}) items.push_back(pod(name, row.kind, "mq", "100m", "n2"));
    add_narrow_budget("mq");
    item("narrow")["status"] = row.status;
    EXPECT_EQ(play().drains[0].outcome, row.outcome) << row.what;
  }
}

TEST_F(RehearsalTest, NoReplacementComesOfAKindThatIsNotPlayed) {
  for (const char* kind : {"ReplicationController", "Job"}) {
    items.push_back(workload(kind, kind, {{"replicas", 1}}));
    items.push_back(pod(std::string("pod-of-") + kind, kind, kind, "100m"));
  }
  EXPECT_THAT(play().assumed,
              Contains(EndsWith("in the snapshot: shop/pod-of-Job, shop/pod-of-ReplicationController")));
}

// The budget allows one unavailable pod, and the StatefulSet creates its pods in order. It creates the next replacement
// only after the last one was Ready for `minReadySeconds` (15 s).
TEST_F(RehearsalTest, AStatefulSetTakesItsMinReadySeconds) {
  input.assumptions.ready_after = 2s;
  input.assumptions.terminate_within = 3s;
  item("n2")["status"]["allocatable"]["cpu"] = "4";
  for (const char* name : {"web-a", "web-b", "web-c", "logs-1"})
    items.erase(std::find(items.begin(), items.end(), item(name)));
  items.push_back(workload("StatefulSet", "db", {{"replicas", 4}}));
  for (const char* name : {"db-0", "db-1", "db-2", "db-3"}) items.push_back(pod(name, "StatefulSet", "db", "100m"));
  add_narrow_budget("db");
  const Duration without = play().took;
  item("db")["spec"]["minReadySeconds"] = 15;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_GE(rehearsal.took, without + 20s);
  item("db")["spec"]["podManagementPolicy"] = "Parallel";
  EXPECT_LE(play().took, without + 2s);
}

TEST_F(RehearsalTest, QuotasAreNotPlayedAndSaidSo) {
  EXPECT_THAT(play().assumed, Not(Contains(HasSubstr("ResourceQuota"))));
  const auto quota = [](const char* name, const char* resource) {
    return Json{{"apiVersion", "v1"},
                {"kind", "ResourceQuota"},
                {"metadata", {{"name", name}, {"namespace", "shop"}}},
                {"spec", {{"hard", {{resource, "3"}}}}}};
  };
  items.push_back(quota("disks", "requests.storage"));
  EXPECT_THAT(play().assumed, Not(Contains(HasSubstr("ResourceQuota"))));
  items.push_back(quota("compute", "requests.cpu"));
  items.push_back(quota("few", "pods"));
  EXPECT_THAT(play().assumed, Contains(EndsWith("ResourceQuota shop/compute, shop/few")));
}

// The scheduler counts the resources of terminating pods until they are deleted. Only then do the replacements have
// capacity. The drain does not wait for that.
TEST_F(RehearsalTest, ThereIsRoomWhenPodsThatAreTerminatingElsewhereHaveGone) {
  const auto ending = [&](const char* name, int grace) {
    Json leaving = pod(name, "ReplicaSet", "old", "1500m", "n2");
    leaving["spec"]["terminationGracePeriodSeconds"] = grace;
    leaving["metadata"]["deletionGracePeriodSeconds"] = grace;
    leaving["metadata"]["deletionTimestamp"] = k8s::format_time(input.snapshot.read_at + std::chrono::seconds(grace));
    return leaving;
  };
  const Json before = items;
  items.push_back(ending("leaving", 600));
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
  EXPECT_THAT(rehearsal.no_room, ::testing::IsEmpty());
  EXPECT_THAT(
      rehearsal.assumed,
      Contains(HasSubstr(
          "these pods find capacity only after pods that are terminating on other nodes are deleted: shop/web-")));
  items = before;
  items.push_back(ending("leaving-some-day", 1'000'000));
  EXPECT_EQ(cli::exit_code(play()), 1);
}

// The rehearsal does not simulate preemption. The possibility of preemption does not mean that there is capacity for
// all pods.
TEST_F(RehearsalTest, PodsThatCouldPreemptOthersAreListed) {
  item("n2")["status"]["allocatable"]["cpu"] = "1";
  for (const char* name : {"web-a", "web-b", "web-c"}) item(name)["spec"]["priority"] = 1000;
  items.push_back(pod("low", "ReplicaSet", "low", "700m", "n2"));
  const Rehearsal rehearsal = play();
  ASSERT_THAT(rehearsal.no_room, SizeIs(3));
  EXPECT_EQ(rehearsal.no_room[0].preempts_on, "n2");
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  EXPECT_THAT(lines_of(rehearsal),
              AllOf(HasSubstr("1 Insufficient cpu, 1 node(s) were unschedulable. It fits only if it preempts pods of "
                              "lower priority on n2\n"),
                    HasSubstr("to place these pods: shop/web-")));
  item("low")["spec"]["priority"] = 1000;
  EXPECT_THAT(lines_of(play()), Not(HasSubstr("reempt")));
}

TEST_F(RehearsalTest, TheResultOfTheFitCheckIsReported) {
  item("n2")["status"]["allocatable"]["cpu"] = "1";
  EXPECT_THAT(lines_of(play()), Not(HasSubstr("would find no capacity on other nodes")));
  input.drain.fit = drain::FitPolicy::warn;
  EXPECT_THAT(lines_of(play()),
              HasSubstr("\n  pod shop/web-c would find no capacity on other nodes: 0/2 nodes are available"));
}

}  // namespace
}  // namespace haulout::rehearse
