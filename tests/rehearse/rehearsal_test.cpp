#include "k8s/codec.hpp"
#include "tests/rehearse/rehearsal_fixture.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Json = nlohmann::json;

TEST_F(RehearsalTest, TakesGracePeriodAndSettleWithoutBudgets) {
  const Rehearsal rehearsal = play();
  ASSERT_THAT(rehearsal.drains, SizeIs(1));
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_GE(rehearsal.took, 20s) << "the grace period of all three";
  EXPECT_LE(rehearsal.took, 27s) << "which end together, and five seconds of settling";
  EXPECT_THAT(rehearsal.no_room, IsEmpty());
  EXPECT_EQ(cli::exit_code(rehearsal), 0);
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("node/n1 would be drained in 2"));
}

// A webhook may cause a pod to be moved when its eviction is requested, although its budget never allows a disruption.
// A rehearsal assumes that webhooks allow every eviction, and names them.
TEST_F(RehearsalTest, WebhooksOnEvictionsAreNamed) {
  const auto webhook = [](const char* name, const char* resource) {
    return Json{{"name", name},
                {"rules", {{{"operations", {"CREATE"}}, {"apiGroups", {""}}, {"resources", {resource}}}}}};
  };
  items.push_back(
      {{"apiVersion", "admissionregistration.k8s.io/v1"},
       {"kind", "ValidatingWebhookConfiguration"},
       {"metadata", {{"name", "virt-api-validator"}}},
       {"webhooks", {webhook("evictions.kubevirt.io", "pods/eviction"), webhook("pods.kubevirt.io", "pods")}}});
  EXPECT_THAT(play().assumed, Contains(AllOf(HasSubstr("webhooks are assumed to allow every eviction"),
                                             EndsWith(": evictions.kubevirt.io"))));
}

TEST_F(RehearsalTest, ARuleThatWaitsTakesItsWholeTime) {
  input.drain.policy.rules = {drain::parse_pod_rule("kind:ReplicaSet=wait-completed=30h").value()};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << "also if it exceeds the limit of the rehearsal";
  EXPECT_GE(rehearsal.took, 30h);
  EXPECT_LE(rehearsal.took, 30h + 1min);
  EXPECT_THAT(rehearsal.assumed,
              Contains(AllOf(HasSubstr("these pods do not finish before the time limit of their rule"),
                             HasSubstr("shop/web-a"))));
}

TEST_F(RehearsalTest, AWaitWithoutALimitIsSaidToBlockTheDrain) {
  input.drain.policy.rules = {drain::parse_pod_rule("kind:ReplicaSet=wait-completed").value()};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::blocked);
  EXPECT_THAT(lines_of(rehearsal),
              HasSubstr("pod shop/web-a: waiting without a time limit until the pod has finished"));
  EXPECT_THAT(rehearsal.assumed, Contains(StartsWith("these pods do not finish, so the drain that waits for them")));
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
}

TEST_F(RehearsalTest, GangsAreBrokenAwaitedOrRefused) {
  using drain::Treatment;
  item("web-a")["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "train";
  item("web-b")["spec"]["schedulingGroup"] = {{"podGroupName", "other"}};
  const Rehearsal broken = play();
  EXPECT_EQ(broken.drains[0].outcome, drain::Outcome::drained);
  EXPECT_THAT(lines_of(broken), AllOf(HasSubstr("GangBroken"), HasSubstr("JobSet shop/train: pod shop/web-a"),
                                      HasSubstr("PodGroup shop/other: pod shop/web-b")));
  input.drain.policy.gangs = Treatment::park;
  const Rehearsal waiting = play();
  EXPECT_EQ(waiting.drains[0].outcome, drain::Outcome::blocked);
  EXPECT_THAT(lines_of(waiting), HasSubstr("pod shop/web-a: waiting without a time limit until the pod has finished, "
                                           "because it is a member of JobSet shop/train"));
  EXPECT_THAT(waiting.assumed, Contains(AllOf(StartsWith("these pods do not finish, so the drain that waits for them"),
                                              HasSubstr("shop/web-a"), HasSubstr("shop/web-b"))));
  input.drain.policy.gangs = Treatment::refuse;
  const Rehearsal refused = play();
  EXPECT_EQ(refused.drains[0].outcome, drain::Outcome::refused);
  EXPECT_THAT(lines_of(refused), HasSubstr("JobSet shop/train"));
  EXPECT_EQ(cli::exit_code(refused), 1);
}

TEST_F(RehearsalTest, ABudgetMakesItWaitForEachReplacement) {
  add_budget(2);
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_GE(rehearsal.took, 2 * 30s + 20s) << "two replacements have to be Ready before the last pod terminates";
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("blocked, the longest first:"));
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("shop/web"));
}

TEST_F(RehearsalTest, APodOnItsWayOutHasAsLongToGoAsItReallyHas) {
  for (Json& item : items)
    if (item["metadata"]["name"] == "web-a") {
      item["metadata"]["deletionTimestamp"] = k8s::format_time(input.snapshot.read_at + 55s);
      item["metadata"]["deletionGracePeriodSeconds"] = 300;
    }
  const Rehearsal rehearsal = play();
  EXPECT_GE(rehearsal.drains[0].started_at, input.snapshot.read_at);
  EXPECT_LE(rehearsal.drains[0].started_at, input.snapshot.read_at + 100ms);
  EXPECT_GE(rehearsal.took, 55s);
  EXPECT_LE(rehearsal.took, 56s);
}

TEST_F(RehearsalTest, AFileIsPlayedAtTheNewestTimeInIt) {
  const WallTime then = input.snapshot.read_at - 24h;
  input.snapshot.stored = true;
  item("n2")["status"]["conditions"][0]["lastHeartbeatTime"] = k8s::format_time(then);
  item("n1")["metadata"]["creationTimestamp"] = k8s::format_time(then - 1000h);
  item("web-a")["metadata"]["deletionTimestamp"] = k8s::format_time(then + 55s);
  item("web-a")["metadata"]["deletionGracePeriodSeconds"] = 300;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << "a day later it would be overdue";
  EXPECT_GE(rehearsal.drains[0].started_at, then);
  EXPECT_LE(rehearsal.drains[0].started_at, then + 100ms);
  EXPECT_GE(rehearsal.took, 55s);
  EXPECT_LE(rehearsal.took, 56s);
  EXPECT_THAT(rehearsal.assumed, Contains(EndsWith("the newest time in it, " + k8s::format_time(then))));
}

TEST_F(RehearsalTest, AFileIsAsOldAsTheLastDeletionInIt) {
  const WallTime then = input.snapshot.read_at - 24h;
  input.snapshot.stored = true;
  item("web-a")["metadata"]["deletionTimestamp"] = k8s::format_time(then + 300s);
  item("web-a")["metadata"]["deletionGracePeriodSeconds"] = 300;
  EXPECT_GE(play().took, 299s);
}

TEST_F(RehearsalTest, AFileWithoutTimesOrOfTheFutureIsPlayedNow) {
  input.snapshot.stored = true;
  for (const char* time : {"", "2099-01-01T00:00:00Z", "once upon a time"}) {
    item("n2")["status"]["conditions"][0]["lastHeartbeatTime"] = time;
    const Rehearsal rehearsal = play();
    EXPECT_GE(rehearsal.drains[0].started_at, input.snapshot.read_at) << time;
    EXPECT_LE(rehearsal.drains[0].started_at, input.snapshot.read_at + 100ms) << time;
    EXPECT_THAT(rehearsal.assumed, SizeIs(2)) << time;
  }
}

TEST_F(RehearsalTest, AClockThatIsFastOnOneNodeDatesNoFile) {
  const WallTime then = input.snapshot.read_at - 24h;
  input.snapshot.stored = true;
  item("n1")["status"]["conditions"][0]["lastHeartbeatTime"] = "2099-01-01T00:00:00Z";
  item("n2")["status"]["conditions"][0]["lastHeartbeatTime"] = k8s::format_time(then);
  item("web-a")["metadata"]["deletionTimestamp"] = k8s::format_time(then + 55s);
  item("web-a")["metadata"]["deletionGracePeriodSeconds"] = 300;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << "a day later it would be overdue";
  EXPECT_THAT(rehearsal.assumed, Contains(EndsWith("the newest time in it, " + k8s::format_time(then))));
}

TEST_F(RehearsalTest, AssumptionsAreOptions) {
  input.assumptions.terminate_within = 2s;
  EXPECT_LE(play().took, 9s);
  add_budget(2);
  input.assumptions.ready_after = 5s;
  EXPECT_LE(play().took, 60s);
}

TEST_F(RehearsalTest, ABudgetThatNeverOpensIsNamed) {
  add_budget(3);
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::blocked);
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("would not be drained within 24h00m: 3 pods still there when the "
                                                   "rehearsal stopped (no --timeout is given)"),
                                         HasSubstr("shop/web-a"), HasSubstr("PodDisruptionBudget shop/web")));
  input.drain.timeout = 1min;
  EXPECT_THAT(lines_of(play()),
              HasSubstr("would not be drained (blocked after 1m00s): the deadline passed with 3 pods"));
}

TEST_F(RehearsalTest, ASurgeOpensABudgetThatNeverOpensByItself) {
  const Json labels = {{"app", "web"}, {"pod-template-hash", "1"}};
  Json& set = item("web");
  set["metadata"]["ownerReferences"] = {
      {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "shop"}, {"uid", "shop"}, {"controller", true}}};
  set["spec"]["selector"]["matchLabels"] = labels;
  set["spec"]["template"]["metadata"]["labels"] = labels;
  for (const char* name : {"web-a", "web-b", "web-c"}) item(name)["metadata"]["labels"] = labels;
  items.push_back(
      workload("Deployment", "shop",
               {{"replicas", 3}, {"strategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxSurge", "25%"}}}}}}));
  item("shop")["spec"]["selector"]["matchLabels"] = {{"app", "web"}};
  item("shop")["spec"]["template"]["metadata"]["labels"] = {{"app", "web"}};
  add_budget(3);
  EXPECT_EQ(play().drains[0].outcome, drain::Outcome::blocked);
  input.drain.guards.surge = drain::Surge::closed_budget;
  const Rehearsal surged = play();
  EXPECT_EQ(surged.drains[0].outcome, drain::Outcome::drained) << lines_of(surged);
  EXPECT_GE(surged.took, 3 * 30s) << "the replacements have to be Ready one after the other";
}

// The snapshot comes from `kubectl get nodes,pods`. So missing DaemonSets do not prove that the cluster has none.
TEST_F(RehearsalTest, ASnapshotWithoutDaemonSetsSaysSo) {
  const auto is_daemon_set = [](const Json& item) { return item["kind"] == "DaemonSet"; };
  items.erase(std::remove_if(items.begin(), items.end(), is_daemon_set), items.end());
  Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_THAT(rehearsal.assumed, Contains(AllOf(HasSubstr("no DaemonSets were read"), HasSubstr("shop/logs-1"))));
  input.drain.policy.daemon_set = drain::Treatment::refuse;
  rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::refused);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("--ignore-daemonsets"), Not(HasSubstr("is gone"))));
}

TEST_F(RehearsalTest, WhatFindsNoRoomIsNamedWithTheSchedulersReason) {
  items[1]["status"]["allocatable"]["cpu"] = "1";
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << "no budget holds them";
  ASSERT_THAT(rehearsal.no_room, SizeIs(2)) << "beside the DaemonSet's pod there is room for one";
  EXPECT_THAT(rehearsal.no_room[0].message, HasSubstr("1 Insufficient cpu, 1 node(s) were unschedulable"));
  EXPECT_EQ(rehearsal.no_room[0].controller, "ReplicaSet/web");
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
}

TEST_F(RehearsalTest, APodThatHadNoRoomBeforeIsNotTheDrainsFault) {
  Json homeless = pod("big", "ReplicaSet", "elsewhere", "64");
  homeless["spec"].erase("nodeName");
  homeless["status"] = {{"phase", "Pending"}};
  items.push_back(homeless);
  EXPECT_THAT(play().no_room, IsEmpty());
}

TEST_F(RehearsalTest, WhatPolicyRefusesIsRefused) {
  input.drain.policy.daemon_set = drain::Treatment::refuse;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::refused);
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("shop/logs-1"));
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
}

TEST_F(RehearsalTest, WhatIsNotWeighedIsSaid) {
  for (Json& item : items)
    if (item["metadata"]["name"] == "web-a")
      item["spec"]["volumes"] = {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}};
  item("web-b")["spec"]["schedulerName"] = "volcano";
  EXPECT_THAT(play().not_weighed, ElementsAre("shop/web-a (volumes)", "shop/web-b (another scheduler)"));
}

TEST_F(RehearsalTest, APodWithGatesTakesNobodysRoom) {
  items.push_back(pod("later", "ReplicaSet", "later", "500m"));
  items.back()["status"] = {{"phase", "Pending"}};
  items.back()["spec"].erase("nodeName");
  EXPECT_THAT(play().no_room, SizeIs(1)) << "it was first";
  items.back()["spec"]["schedulingGates"] = {{{"name", "quota"}}};
  const Rehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.no_room, IsEmpty());
  EXPECT_THAT(rehearsal.assumed, Contains("scheduling gates are not removed from these pods: shop/later"));
}

TEST_F(RehearsalTest, APodWhoseControllerIsNotPlayedHasNoReplacement) {
  items.push_back(pod("batch-x", "Job", "batch", "100m"));
  items.push_back(pod("orphan-x", "ReplicaSet", "not-in-the-file", "100m"));
  items.push_back(pod("done-x", "Job", "batch", "100m"));
  items.back()["status"]["phase"] = "Succeeded";
  items.push_back(pod("alone", "", "", "100m"));
  items.back()["metadata"].erase("ownerReferences");
  EXPECT_THAT(play().assumed, Contains(EndsWith("or not in the snapshot: shop/batch-x, shop/orphan-x")));
}

TEST_F(RehearsalTest, ADeploymentOfAFileWithoutItsReplicaSetsMakesNone) {
  items.push_back(workload("Deployment", "above", {{"replicas", 2}}));
  items.back()["status"] = {{"observedGeneration", 1}, {"replicas", 2}};
  for (const char* name : {"above-a", "above-b"}) items.push_back(pod(name, "ReplicaSet", "above-1", "100m"));
  const Rehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.no_room, IsEmpty()) << "of a second set of pods there would be no room for one";
  EXPECT_THAT(rehearsal.assumed, Contains(EndsWith("or not in the snapshot: shop/above-a, shop/above-b")));
}

TEST_F(RehearsalTest, WhatIsMadeWithGatesFindsNoRoom) {
  item("web")["spec"]["template"]["spec"]["schedulingGates"] = {{{"name", "quota"}}};
  const Rehearsal rehearsal = play();
  ASSERT_THAT(rehearsal.no_room, SizeIs(3));
  EXPECT_THAT(rehearsal.no_room[0].message, HasSubstr("scheduling gates"));
}

TEST_F(RehearsalTest, SeveralNodesAreAllCordonedFirst) {
  add_node("n3", "4");
  input.nodes.clear();
  input.selector = "pool=old";
  for (Json& item : items)
    if (item["metadata"]["name"] == "n3") item["metadata"]["labels"] = {{"pool", "new"}};
  const Rehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.drains, SizeIs(2));
  for (const Timeline::Row& row : rehearsal.timeline.rows())
    EXPECT_EQ(row.node, "n1") << row.pod << " was not moved to the next node to be drained";
}

TEST_F(RehearsalTest, TheTimeOfANodeIsItsOwn) {
  input.nodes = {"n1", "n2"};
  input.drain.timeout = 5min;
  add_budget(3);
  items.push_back(pod("web-d", "ReplicaSet", "web", "500m", "n2"));
  item("web")["spec"]["replicas"] = 4;
  item("web")["spec"]["template"]["spec"]["schedulingGates"] = {{{"name", "quota"}}};
  const Rehearsal rehearsal = play();
  EXPECT_GE(rehearsal.took, 10min);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("node/n1 would not be drained (blocked after 5m00s)"),
                                         HasSubstr("node/n2 would not be drained (blocked after 5m00s)")));
  EXPECT_EQ(rehearsal.drains[1].started_at, rehearsal.drains[0].finished_at);
}

TEST_F(RehearsalTest, NodesThatAreRehearsedTogetherAcceptNoPods) {
  input.nodes = {"n1", "n2"};
  input.drain.fit = drain::FitPolicy::block;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::refused);
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
}

TEST_F(RehearsalTest, WhatTheSnapshotCaughtBeforeItWasReadyIsSaid) {
  EXPECT_THAT(play().assumed, SizeIs(2)) << "nothing but how long pods take";
  items.push_back(pod("early", "ReplicaSet", "web", "100m"));
  items.back()["status"] = {{"phase", "Pending"}};
  items.push_back(pod("ill", "ReplicaSet", "web", "100m"));
  items.back()["status"]["conditions"] = {{{"type", "Ready"}, {"status", "False"}}};
  items.push_back(pod("lost", "ReplicaSet", "web", "8"));
  items.back()["status"] = {{"phase", "Pending"}};
  items.back()["spec"].erase("nodeName");
  const Rehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.assumed,
              Contains(AllOf(HasSubstr("are scheduled where there is capacity"), EndsWith(": shop/lost"))));
  EXPECT_THAT(rehearsal.assumed, Contains(AllOf(HasSubstr("become Ready"), EndsWith(": shop/early"))));
  EXPECT_THAT(rehearsal.assumed, Contains(AllOf(HasSubstr("but their replacements do"), EndsWith(": shop/ill"))));
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("\n  starting pods become Ready: shop/early\n"));
}

TEST_F(RehearsalTest, TheSameSnapshotGivesTheSameReport) {
  add_budget(2);
  EXPECT_EQ(cli::rehearsal_json(play(), input.assumptions), cli::rehearsal_json(play(), input.assumptions));
}

TEST_F(RehearsalTest, UnusableInputIsNamed) {
  input.nodes = {"n9"};
  input.snapshot.documents = {{document()}};
  const auto unknown = rehearse(input);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message(), AllOf(HasSubstr("n9"), HasSubstr("2 nodes")));
  EXPECT_EQ(unknown.error().code(), Errc::invalid);
  for (const std::string document : {"{", "kind: Pod", "kind: Pod\nmetadata: {name: \"\xff\"}"}) {
    input.snapshot.documents = {{document}};
    const auto unusable = rehearse(input);
    ASSERT_FALSE(unusable) << document;
    EXPECT_EQ(unusable.error().code(), Errc::decode) << document;
    EXPECT_THAT(unusable.error().message(), StartsWith("the snapshot cannot be used: "));
  }
}

TEST_F(RehearsalTest, JsonHasEverything) {
  add_budget(2);
  const Rehearsal rehearsal = play();
  const Json report = Json::parse(cli::rehearsal_json(rehearsal, input.assumptions));
  EXPECT_EQ(report["kind"], "RehearsalReport");
  EXPECT_EQ(report["assumptions"]["readyAfterSeconds"], 30.0);
  EXPECT_TRUE(report["assumptions"]["terminateWithinSeconds"].is_null());
  EXPECT_THAT(report["assumptions"]["all"], SizeIs(2));
  EXPECT_EQ(report["drains"][0]["kind"], "DrainReport");
  EXPECT_EQ(report["drains"][0]["startedAt"].get<std::string>().substr(0, 4), "2027") << "the snapshot's own time";
  EXPECT_GE(report["waits"].size(), 2u);
  EXPECT_EQ(report["seconds"].get<double>(),
            std::chrono::duration<double>(std::chrono::round<std::chrono::milliseconds>(rehearsal.took)).count());
}

}  // namespace
}  // namespace haulout::rehearse
