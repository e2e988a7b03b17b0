// Guards: controllers with a single replica, annotations for exceptions, and owners of other kinds.
#include "tests/scenario/guards_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::Outcome;
using drain::SingleReplica;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(Guards, ASingleReplicaIsBlockedBeforeAnythingIsTouched) {
  deploy("web", 1);
  deploy("db", 1, Json::object(), "StatefulSet");
  deploy("api", 2);
  options.guards.single_replica = SingleReplica::block;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message, HasSubstr("2 pods"));
  EXPECT_THAT(report.message, HasSubstr("shop/db-0 (SingleReplica)"));
  EXPECT_THAT(pod(report, "db-0").message, HasSubstr("StatefulSet shop/db has a single replica"));
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_FALSE(unschedulable());
}

// A drain that may not evict the pod when the time limit of a rule has passed must say so before it begins.
TEST_F(Guards, ARuleThatWaitsForALimitedTimeDoesNotHideASingleReplica) {
  deploy("db", 1, Json::object(), "StatefulSet");
  deploy("api", 2);
  options.guards.single_replica = SingleReplica::block;
  options.policy.rules = {drain::parse_pod_rule("kind:StatefulSet=wait-completed=10m").value()};
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message, HasSubstr("shop/db-0 (SingleReplica)"));
  EXPECT_FALSE(unschedulable());
}

// After the preflight, a person scales a Deployment down to one replica. With several nodes, a node's drain may start
// that long after its preflight.
TEST_F(Guards, WhatHasASingleReplicaLeftWhenItsTurnComesIsNotEvicted) {
  deploy("web", 2);
  deploy("api", 2);
  options.guards.single_replica = SingleReplica::block;
  options.timeout = 1min;
  const auto report =
      drain_after_the_plan([this] { cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", 1}}}}); });
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(parked_with("SingleReplica"), HasSubstr("shop/web-"));
  EXPECT_EQ(ready_of("web"), 1u);
  EXPECT_EQ(accepted_evictions(), 2u) << "those of api";
}

// A person, or an autoscaler, scales a Deployment down while the budget of its pod is closed. When the budget opens,
// the number of replicas that the drain has read is minutes old.
TEST_F(Guards, WhatHasASingleReplicaLeftWhenItsBudgetOpensIsNotEvicted) {
  deploy("web", 2);
  deploy("api", 2);
  add(a_budget("web", {{"minAvailable", 2}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  options.guards.single_replica = SingleReplica::block;
  options.timeout = 10min;
  after(2min, [this] { cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", 1}}}}); });
  after(4min, [this] { cluster.remove("poddisruptionbudgets", "shop", "web"); });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(parked_with("SingleReplica"), HasSubstr("shop/web-"));
  EXPECT_EQ(ready_of("web"), 1u);
  EXPECT_EQ(accepted_evictions(), 2u) << "those of api";
}

// The preflight reports a Deployment with one replica. Before the node's drain starts, a person scales it up, and
// another one down to one replica. When the drain starts, it must warn about the second one only.
TEST_F(Guards, WarningsDescribeTheClusterWhenTheDrainOfTheNodeBegins) {
  deploy("web", 2);
  deploy("api", 1);
  options.guards.single_replica = SingleReplica::warn;
  const auto report = drain_after_the_plan([this] {
    cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", 1}}}});
    cluster.patch("deployments", "shop", "api", {{"spec", {{"replicas", 2}}}});
  });
  EXPECT_THAT(report, Ended(Outcome::drained));
  std::vector<std::string> before;
  for (const auto& entry : told.entries) {
    if (entry.type == drain::EventType::eviction_sent) break;
    if (entry.type == drain::EventType::diagnosis_raised) before.push_back(entry.diagnosis + " " + entry.message);
  }
  EXPECT_THAT(before, ::testing::ElementsAre(::testing::AllOf(HasSubstr("OnlyReplicaEvicted"), HasSubstr("shop/web"))));
}

TEST_F(Guards, ASingleReplicaIsWarnedOf) {
  deploy("web", 1);
  options.guards.single_replica = SingleReplica::warn;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("OnlyReplicaEvicted"));
  EXPECT_TRUE(told.withdrawn("OnlyReplicaEvicted"));
}

TEST_F(Guards, AnAnnotationOfTheControllerAllowsIt) {
  deploy("web", 1, {{"haulout.dev/single-replica", "allow"}});
  options.guards.single_replica = SingleReplica::block;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_FALSE(told.raised("OnlyReplicaEvicted"));
}

TEST_F(Guards, AnAnnotationThatMakesNoSenseIsSaid) {
  deploy("web", 2, {{"haulout.dev/single-replica", "perhaps"}});
  options.guards.single_replica = SingleReplica::warn;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.advised("OverrideInvalid"));
  EXPECT_TRUE(told.withdrawn("OverrideInvalid")) << "it is about pods that have gone";
  EXPECT_THAT(report.diagnoses, IsEmpty());
}

TEST_F(Guards, OfSeveralAnnotationsThatMakeNoSenseAllAreNamed) {
  deploy("web", 2, {{"haulout.dev/single-replica", "perhaps"}, {"haulout.dev/max-unavailable", "many"}});
  options.guards.single_replica = SingleReplica::warn;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(told.message_of("OverrideInvalid"),
              AllOf(HasSubstr("single-replica=perhaps"), HasSubstr("max-unavailable=many")));
}

TEST_F(Guards, AnInvalidAnnotationIsReportedAlsoWithMaxUnavailablePerController) {
  deploy("web", 2, {{"haulout.dev/max-unavailable", "many"}});
  start_slowly(5s);
  options.guards.max_unavailable = drain::Share{1, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("OverrideInvalid"));
  EXPECT_FALSE(told.raised("LastReadyPods"));
}

TEST_F(Guards, AllReadyPodsHereAndNoBudgetIsWarnedOf) {
  deploy("web", 2);
  options.guards.single_replica = SingleReplica::warn;
  cluster.patch("deployments", "shop", "web", {{"status", {{"readyReplicas", 2}}}});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.advised("LastReadyPods"));
  EXPECT_TRUE(told.withdrawn("LastReadyPods"));
  EXPECT_THAT(report.diagnoses, IsEmpty());
}

// There may be a budget that the drain is not permitted to read. So it does not warn about a workload without one.
TEST_F(Guards, WhereBudgetsCannotBeSeenNoneIsSaidToBeMissing) {
  deploy("web", 2);
  options.guards.single_replica = SingleReplica::warn;
  cluster.patch("deployments", "shop", "web", {{"status", {{"readyReplicas", 2}}}});
  for (const char* verb : {"list", "watch"}) cluster.forbid(verb, "poddisruptionbudgets");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_FALSE(told.raised("LastReadyPods"));
}

TEST_F(Guards, ARecommendedOptionThatIsSetIsNotRecommended) {
  deploy("web", 2);
  start_slowly(5s);
  options.guards.single_replica = SingleReplica::warn;
  options.guards.max_unavailable = drain::Share{1, false};
  cluster.patch("deployments", "shop", "web", {{"status", {{"readyReplicas", 2}}}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_FALSE(told.raised("LastReadyPods"));
}

TEST_F(Guards, AnAnnotationThatIsCorrectedIsNotToldAnyMore) {
  deploy("web", 3, {{"haulout.dev/max-unavailable", "many"}});
  start_slowly(3min);
  options.guards.max_unavailable = drain::Share{1, false};
  after(30s, [this] {
    EXPECT_TRUE(told.raised("OverrideInvalid"));
    cluster.patch("deployments", "shop", "web",
                  {{"metadata", {{"annotations", {{"haulout.dev/max-unavailable", "2"}}}}}});
  });
  after(30s + 45s, [this] {
    EXPECT_TRUE(told.withdrawn("OverrideInvalid"));
    EXPECT_EQ(accepted_evictions(), 2u);
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(Guards, ABudgetForTheLastReadyPodsEndsTheWarning) {
  deploy("web", 2);
  add(a_pod("first", {.grace = 90, .annotations = {{"haulout.dev/drain-order", "-1"}}}));
  options.max_concurrent = 1;
  options.guards.single_replica = SingleReplica::warn;
  cluster.patch("deployments", "shop", "web", {{"status", {{"readyReplicas", 2}}}});
  after(30s, [this] {
    EXPECT_TRUE(told.raised("LastReadyPods"));
    add(a_budget("web", {{"maxUnavailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  });
  after(32s, [this] { EXPECT_TRUE(told.withdrawn("LastReadyPods")); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(Guards, JobsAreSingleByNature) {
  add(a_pod("backup", {.owner_kind = "Job", .owner_name = "backup", .owner_api = "batch/v1"}));
  options.guards.single_replica = SingleReplica::block;
  options.guards.max_unavailable = drain::Share{1, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(asked_for_controllers(), 0u);
}

TEST_F(Guards, OtherControllersAreAskedForTheirScale) {
  add({{"apiVersion", "v1"},
       {"kind", "ReplicationController"},
       {"metadata", {{"name", "old"}, {"namespace", "shop"}, {"uid", "old-uid"}}},
       {"spec", {{"replicas", 1}}}});
  add(a_pod("old-1",
            {.owner_kind = "ReplicationController", .owner_name = "old", .owner_uid = "old-uid", .owner_api = "v1"}));
  options.guards.single_replica = SingleReplica::block;
  EXPECT_THAT(drain(), Ended(Outcome::refused));
  EXPECT_THAT(requests("get", "replicationcontrollers", "scale"), SizeIs(1));
}

TEST_F(Guards, WhoseReplicasAreUnknownIsEvictedAndThatIsSaid) {
  add(a_pod("clone", {.owner_kind = "CloneSet", .owner_name = "clones", .owner_api = "apps.kruise.io/v1alpha1"}));
  options.guards.single_replica = SingleReplica::block;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.withdrawn("ReplicasUnknown"));
  EXPECT_THAT(report.diagnoses, IsEmpty());
  // The diagnosis was raised before the first eviction.
  const auto first_of = [this](drain::EventType type) {
    return std::find_if(told.entries.begin(), told.entries.end(),
                        [&](const auto& entry) { return entry.type == type; });
  };
  const auto raised = first_of(drain::EventType::diagnosis_raised);
  ASSERT_NE(raised, told.entries.end());
  EXPECT_EQ(raised->diagnosis, "ReplicasUnknown");
  EXPECT_LT(raised, first_of(drain::EventType::eviction_sent));
}

// The owner above the ReplicaSet has no scale, so the ReplicaSet's own number of replicas counts. The same applies if
// the API of the owner is not served.
TEST_F(Guards, AReplicaSetAnswersForItselfWhereNobodyAboveItDoes) {
  options.guards.single_replica = SingleReplica::block;
  deploy("web", 1, Json::object(), "ReplicaSet");
  deploy("pair", 2, Json::object(), "ReplicaSet");
  for (const char* name : {"web", "pair"}) put_below(name, "v1", "Service");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message, AllOf(HasSubstr("shop/web-"), Not(HasSubstr("shop/pair-"))));
  EXPECT_FALSE(told.raised("ReplicasUnknown"));
}

// The drain is not permitted to read the scale of the owner above the ReplicaSet. The ReplicaSet's own number of
// replicas does not count instead: the owner may have several, for example a canary with one pod beside one with four.
TEST_F(Guards, NoReplicaSetAnswersForWhatMerelyMayNotBeRead) {
  cluster.forbid("get", "replicationcontrollers/scale");
  options.guards.single_replica = SingleReplica::block;
  deploy("web", 1, Json::object(), "ReplicaSet");
  put_below("web", "v1", "ReplicationController");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("ReplicasUnknown"));
  EXPECT_THAT(told.message_of("ReplicasUnknown"), HasSubstr("replicationcontrollers/scale"));
}

TEST_F(Guards, PodsThatAreNotCountedAreSaidNotToBe) {
  add(a_pod("broker", {.owner_kind = "Service", .owner_name = "kafka", .owner_api = "v1"}));
  options.guards.max_unavailable = drain::Share{1, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  const auto raised = std::find_if(told.entries.begin(), told.entries.end(),
                                   [](const auto& entry) { return entry.diagnosis == "ReplicasUnknown"; });
  ASSERT_NE(raised, told.entries.end());
  EXPECT_THAT(
      raised->message,
      AllOf(HasSubstr("v1 Service has no scale subresource"),
            HasSubstr("--max-unavailable-per-controller limits only the eviction of its pods with the annotation"),
            HasSubstr("haulout.dev/max-unavailable")));
}

// The API of a custom resource was removed. So its controller cannot replace pods any more, and the guard does not
// apply to them.
TEST_F(Guards, PodsOfAnApiThatIsNotServedAreNotCounted) {
  for (const char* name : {"vm-0", "vm-1", "vm-2"})
    add(a_pod(name, {.owner_kind = "StrimziPodSet", .owner_name = "vm", .owner_api = "core.strimzi.io/v1beta2"}));
  options.guards.max_unavailable = drain::Share{1, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 2min);
  EXPECT_THAT(
      told.message_of("ReplicasUnknown"),
      AllOf(HasSubstr("the API server does not serve core.strimzi.io/v1beta2"),
            HasSubstr("--max-unavailable-per-controller limits only the eviction of its pods with the annotation")));
}

TEST_F(Guards, ALateSingleReplicaIsParkedUntilThereAreTwo) {
  options.guards.single_replica = SingleReplica::block;
  add(a_pod("slow", {.grace = 30}));
  // The pod was already being bound to the node when the node was cordoned.
  after(1s, [this] {
    add(a_workload("StatefulSet", "late", 1, {{"nodeName", "n1"}, {"terminationGracePeriodSeconds", 5}}));
  });
  after(2min, [this] {
    EXPECT_THAT(pods_on("n1"), ::testing::ElementsAre("late-0"));
    Json scaled = {{"spec", {{"replicas", 2}, {"template", {{"spec", {{"nodeName", nullptr}}}}}}}};
    cluster.patch("statefulsets", "shop", "late", scaled);
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(parked_with("SingleReplica"), "shop/late-0");
  EXPECT_LT(took(), 2min + 50s);
}

}  // namespace
}  // namespace haulout::scenario
