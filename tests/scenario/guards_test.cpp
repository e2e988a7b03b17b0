// Guards beyond PodDisruptionBudgets: limits on a controller's pods without a Ready replacement, and canaries.
#include "tests/scenario/guards_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Guards, OffTheyCostNoRequest) {
  deploy("web", 4);
  deploy("db", 1, Json::object(), "StatefulSet");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(asked_for_controllers(), 0u);
}

TEST_F(Guards, NeverMoreThanAllowedWithoutAReadyReplacement) {
  deploy("web", 8);
  add_pods(3, {.grace = 5}, "free");
  start_slowly(20s);
  watch_ready("web");
  options.guards.max_unavailable = drain::Share{25, true};
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 11u);
  EXPECT_EQ(fewest_, 6u);
  // The eight pods leave in four pairs. Each pair but the first waits 20 s until the replacements of the pair before
  // are Ready.
  EXPECT_GE(took(), 60s);
  EXPECT_LT(took(), 75s);
  EXPECT_THAT(parked_with("BlockedByControllerBudget"), HasSubstr("shop/web-"));
  EXPECT_LT(*pod(report, "free-2").vanished_at - report.started_at, 7s) << "nobody waits for those that wait";
}

// The drain does not wait any more for a pod whose kubelet is stopped. The pod still counts against the guard, because
// it has no replacement yet.
TEST_F(Guards, APodThatIsNotWaitedForAnyMoreStillCounts) {
  deploy("db", 3, Json::object(), "StatefulSet");
  watch_ready("db");
  after(Duration::zero(), [this] { cluster.stop_kubelet("n1"); });
  after(60s, [this] { cluster.start_kubelet("n1"); });
  options.guards.max_unavailable = drain::Share{1, false};
  options.policy.skip_terminating_after = 10s;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 2u);
  EXPECT_GE(told.count(EventType::left), 1u);
}

TEST_F(Guards, ItTakesAFewRequests) {
  deploy("web", 8);
  start_slowly(5s);
  options.guards.max_unavailable = drain::Share{1, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(requests("get", "replicasets"), SizeIs(::testing::Le(3u)));
  EXPECT_THAT(requests("get", "deployments"), SizeIs(::testing::Le(3u)));
  EXPECT_LE(asked_for_controllers(), 2u + 2u + 4u) << "looked up, listed and watched, and read again each 30 s";
}

TEST_F(Guards, AReadyReplacementLetsTheNextOneGoAtOnce) {
  deploy("web", 2);
  start_slowly(47s);
  options.guards.max_unavailable = drain::Share{1, false};
  std::optional<WallTime> ready;
  after(1s, [&] {
    cluster.on_change([&](const sim::Change&) {
      if (!ready && ready_of("web") == 2) ready = clock.wall_now();
    });
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  ASSERT_TRUE(ready);
  std::vector<WallTime> sent;
  for (const auto& entry : told.entries)
    if (entry.type == EventType::eviction_sent) sent.push_back(entry.at);
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_GE(sent[1], *ready);
  EXPECT_LE(sent[1], *ready + 20ms);
}

// The watch of the replacements has a revision far ahead of the restored etcd, so it does not deliver the Ready
// replacement. The drain must notice the replacement without it.
TEST_F(Guards, AReplacementThatIsReadyAfterAnEtcdRestoreIsHeardOf) {
  deploy("web", 2);
  add_bystander();
  start_slowly(20s);
  options.guards.max_unavailable = drain::Share{1, false};
  restore_unheard(2s, 3s);
  after(30s, [this] { stir_bystander(300); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 2u);
}

TEST_F(Guards, FewerReplicasLetTheOthersGo) {
  deploy("web", 4);
  start_slowly(1h);
  options.guards.max_unavailable = drain::Share{1, false};
  after(60s, [this] { cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", 3}}}}); });
  after(59s, [this] { EXPECT_EQ(accepted_evictions(), 1u); });
  after(75s, [this] { EXPECT_EQ(accepted_evictions(), 2u) << "seen when the pod that was starting had gone"; });
  options.timeout = 3min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_EQ(accepted_evictions(), 2u);
}

// The situation after another node was drained: a replacement is still starting. It counts against the guard.
TEST_F(Guards, WhatIsStillStartingElsewhereCounts) {
  deploy("web", 2);
  options.guards.max_unavailable = drain::Share{1, false};
  after(0s, [this] { cluster.timing().pod_start = 40s; });
  // Another client deletes one of the two pods. Its replacement is still starting when the drain begins.
  bool removed = false;
  cluster.on_change([&](const sim::Change&) {
    if (removed || ready_of("web") < 2) return;
    removed = true;
    cluster.cordon("n1");
    cluster.timing().pod_start = 40s;
    for (const Json& pod : cluster.all("pods"))
      if (sim::name_of(pod).starts_with("web-")) return cluster.remove("pods", "shop", sim::name_of(pod));
  });
  watch_ready("web");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 1u);
}

// The second node is drained right after the first, while the replacement of the first node's pod is still starting on
// another node. It counts against the guard.
TEST_F(Guards, WhatLeftTheNodeBeforeCounts) {
  for (const auto& [node, cpu] : {std::pair("n1", "1"), std::pair("n2", "1"), std::pair("n3", "2")})
    cluster.patch("nodes", "", node, {{"status", {{"allocatable", {{"cpu", cpu}, {"pods", "20"}}}}}});
  cluster.cordon("n3");
  Json workload = a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 1}});
  workload["spec"]["template"]["spec"]["containers"] = {
      {{"name", "m"}, {"image", "i"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}};
  add(workload);
  options.guards.max_unavailable = drain::Share{1, false};
  options.drained_together = {"n1", "n2"};
  options.settle = {};
  auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    co_await clock.sleep_until(clock.now() + 30s);
    EXPECT_THAT(pods_on("n1"), SizeIs(1));
    EXPECT_THAT(pods_on("n2"), SizeIs(1));
    cluster.patch("nodes", "", "n3", {{"spec", {{"unschedulable", false}}}});
    cluster.timing().pod_start = 60s;
    cluster.on_change([this](const sim::Change&) { fewest_ = std::min(fewest_, ready_of("web")); });
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
    drain::Drain first(client, rng, told, options, "n1"), second(client, rng, told, options, "n2");
    EXPECT_TRUE(co_await first.preflight() && co_await second.preflight());
    EXPECT_TRUE(co_await first.cordon() && co_await second.cordon());
    EXPECT_TRUE(co_await first.evict());
    EXPECT_TRUE(co_await second.evict());
  };
  run(with_task_group(body));
  EXPECT_EQ(accepted_evictions(), 2u);
  EXPECT_EQ(fewest_, 1u);
}

// No other node was drained since the preflight. So the drain does not list again what it listed for the plan of its
// evictions.
TEST_F(Guards, ANodeThatIsDrainedAloneIsLookedAtOnce) {
  deploy("web", 2);
  options.guards.max_unavailable = drain::Share{1, false};
  options.drained_together = {"n1"};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(requests("list", "pods"), SizeIs(3))
      << "those of the node, those of the namespace, and the proof that all have gone";
}

// The right to read ReplicaSets is revoked after the preflight, and restored 30 s after the node's evictions start. The
// drain waits until then, and does not fail.
TEST_F(Guards, ARightThatIsAwayForAWhileEndsNothing) {
  deploy("web", 2);
  options.guards.max_unavailable = drain::Share{1, false};
  const auto change = [this] {
    cluster.forbid("get", "replicasets");
    cluster.after(40s, [this] { cluster.permit("get", "replicasets"); });
  };
  EXPECT_THAT(drain_after_the_plan(change, 10s), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 2u);
}

// The cordon takes 10 s, so the drain makes the plan of its evictions again.
TEST_F(Guards, TheOrderIsKeptWhenThePlanIsMadeAgain) {
  for (const auto& [name, order] : {std::pair("first", "-1"), std::pair("second", "1")})
    add(a_workload("Deployment", name, 2, {{"terminationGracePeriodSeconds", 5}},
                   {{"sim.haulout.dev/prefers-node", "n1"}, {"haulout.dev/drain-order", order}}));
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::slow, .delay = 10s}});
  way = &faults;
  options.guards.max_unavailable = drain::Share{2, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(faults.struck(), ::testing::Not(IsEmpty()));
  std::size_t evicted = 0;
  for (const auto& entry : told.entries) {
    evicted += entry.type == EventType::evicted ? 1u : 0u;
    if (entry.type == EventType::eviction_sent && entry.pod.starts_with("shop/second-")) EXPECT_GE(evicted, 2u);
  }
}

// Scales that cannot be read delay the drain by less than two minutes in all, however many there are and although the
// drain makes the plan of its evictions twice.
TEST_F(Guards, ScalesThatCannotBeReadHoldNobodyUpForLong) {
  deploy("web", 2);
  for (const std::string name : {"old", "older", "oldest"})
    add(a_pod(
        name + "-1",
        {.owner_kind = "ReplicationController", .owner_name = name, .owner_uid = name + "-uid", .owner_api = "v1"}));
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::slow, .delay = 10s}});
  faults.add(
      {.verb = "get", .resource = "replicationcontrollers/scale", .fault = {.kind = sim::FaultKind::server_error}});
  way = &faults;
  options.guards.max_unavailable = drain::Share{2, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(faults.struck(), ::testing::Not(IsEmpty()));
  EXPECT_LT(took(), 2min);
}

TEST_F(Guards, ReplicaSetsThatOwnEachOtherAreNotReadForEver) {
  cluster.switches().workload_controllers = false;
  for (const auto& [name, above] : {std::pair("one", "other"), std::pair("other", "one")})
    add({{"kind", "ReplicaSet"},
         {"metadata",
          {{"name", name},
           {"namespace", "shop"},
           {"uid", std::string("uid-of-") + name},
           {"ownerReferences",
            {{{"apiVersion", "apps/v1"},
              {"kind", "ReplicaSet"},
              {"name", above},
              {"uid", std::string("uid-of-") + above},
              {"controller", true}}}}}},
         {"spec", {{"replicas", 1}}}});
  add(a_pod("web-1", {.owner_kind = "ReplicaSet", .owner_name = "one", .owner_uid = "uid-of-one"}));
  options.guards.max_unavailable = drain::Share{1, false};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(requests("get", "replicasets").size(), 30u);
}

TEST_F(Guards, WithoutTheRightToSeeControllersNothingIsTouched) {
  deploy("web", 2);
  cluster.forbid("get", "replicasets");
  options.guards.max_unavailable = drain::Share{1, false};
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(report.connection_failed);
  EXPECT_THAT(report.message, HasSubstr("grant verb get on resource deployments, replicasets, statefulsets (API group "
                                        "\"apps\")"));
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_FALSE(unschedulable());
}

TEST_F(Guards, WithoutTheRightToSeeReplacementsNothingIsTouched) {
  deploy("web", 2);
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add({.verb = "list",
              .resource = "pods",
              .skip = 1,  // the list of the node's own pods
              .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  way = &faults;
  options.guards.max_unavailable = drain::Share{1, false};
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(report.connection_failed);
  EXPECT_THAT(report.message, HasSubstr("grant verb list on resource pods"));
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_FALSE(unschedulable());
}

TEST_F(Guards, ALatePodIsGuardedToo) {
  deploy("web", 2);
  start_slowly(20s);
  options.guards.max_unavailable = drain::Share{1, false};
  add(a_pod("slow", {.grace = 300}));
  after(10s, [this] {
    cluster.uncordon("n1");
    add(a_workload("StatefulSet", "late", 2, {{"terminationGracePeriodSeconds", 5}},
                   {{"sim.haulout.dev/prefers-node", "n1"}}, "other"));
  });
  after(60s, [this] {
    EXPECT_EQ(ready_of("late"), 2u);
    cluster.cordon("n1");
    cluster.on_change([this](const sim::Change&) { fewest_ = std::min(fewest_, ready_of("late")); });
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(requests("get", "statefulsets"), ::testing::Not(IsEmpty()));
  EXPECT_EQ(fewest_, 1u) << "one of them at a time";
}

TEST_F(Guards, ACanaryThatFindsNoNodeKeepsTheOthers) {
  deploy("web", 4);
  for (const char* node : {"n2", "n3"}) cluster.cordon(node);
  options.guards.canary = 30s;
  after(3min, [this] {
    EXPECT_EQ(accepted_evictions(), 1u);
    EXPECT_TRUE(told.raised("ReplacementUnschedulable"));
    cluster.uncordon("n2");
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_TRUE(told.withdrawn("ReplacementUnschedulable"));
  EXPECT_THAT(parked_with("ReplacementUnschedulable"), HasSubstr("shop/web-"));
  for (const auto& entry : told.entries)
    if (entry.type == EventType::diagnosis_raised) EXPECT_THAT(entry.message, HasSubstr("nodes are available"));
  EXPECT_LT(took(), 3min + 20s);
}

TEST_F(Guards, AReplacementWithoutANodeIsDiagnosedWithoutACanaryToo) {
  deploy("web", 4);
  for (const char* node : {"n2", "n3"}) cluster.cordon(node);
  options.guards.max_unavailable = drain::Share{1, false};
  after(3min, [this] {
    EXPECT_EQ(accepted_evictions(), 1u);
    EXPECT_TRUE(told.raised("ReplacementUnschedulable"));
    cluster.uncordon("n2");
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_TRUE(told.withdrawn("ReplacementUnschedulable"));
}

TEST_F(Guards, ACanaryThatFindsANodeCostsHardlyAnyTime) {
  deploy("web", 4);
  start_slowly(1h);
  options.guards.canary = 30s;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 8s);
  EXPECT_FALSE(told.raised("ReplacementUnschedulable"));
}

TEST_F(Guards, ACanaryThatNobodyReplacesHoldsForItsTime) {
  deploy("web", 4);
  after(0s, [this] { cluster.switches().workload_controllers = false; });
  options.guards.canary = 30s;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(took(), 35s);
  EXPECT_LT(took(), 40s);
}

}  // namespace
}  // namespace haulout::scenario
