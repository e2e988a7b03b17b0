// Pods: identity, deletion, finalizers, grace periods, filters, order.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const Json tolerate_cordon = {{{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}}};

TEST_F(Scenario, S10_StatefulSetNamesake) {
  add(a_workload("StatefulSet", "db", 2, {{"terminationGracePeriodSeconds", 3}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(pods_on("n1"), IsEmpty());
  EXPECT_EQ(evictions().size(), 2u) << "the namesakes on the other nodes are nobody's business";
}

// The pod is replaced by another one of the same name between the list and the eviction. The eviction names the old UID
// and has no effect on the new pod. The drain sends no second eviction, because the watch reports the change.
TEST_F(Scenario, S11_NamesakeBetweenListAndEvict) {
  add(a_workload("StatefulSet", "db", 1, {{"terminationGracePeriodSeconds", 0}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_budget("db", {{"maxUnavailable", 1}}));
  cluster.server().intercept([this, done = false](const sim::Call&, const sim::AuditEntry& entry) mutable {
    if (entry.subresource == "eviction" && !std::exchange(done, true)) {
      cluster.remove("pods", "shop", "db-0");
      auto namesake = a_pod("db-0", {.node = "n2", .labels = {{"app", "db"}}});
      namesake["metadata"]["uid"] = "namesake-uid";
      cluster.create("pods", namesake);
    }
    return std::optional<http::Response>();
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LE(evictions().size(), 1u);
  EXPECT_EQ(sim::uid_of(cluster.get("pods", "shop", "db-0")), "namesake-uid");
  EXPECT_FALSE(sim::terminating(cluster.get("pods", "shop", "db-0")));
}

TEST_F(Scenario, S12_NamesakeOnTheSameNodeIsPinnedAfterTwoReturns) {
  add(a_workload("StatefulSet", "db", 1, {{"terminationGracePeriodSeconds", 8}, {"tolerations", tolerate_cordon}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_pod("slow", {.grace = 120}));  // keeps the drain running while db-0 is evicted and comes back
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_TRUE(told.raised("PodPinned"));
  EXPECT_EQ(accepted_evictions(), 3u) << "slow, and db-0 twice";
  EXPECT_THAT(pods_on("n1"), ElementsAre("db-0"));
}

// A person may drain nodes without control over the workloads whose pods tolerate every taint. By option, the drain
// leaves a pod on the node that comes back after its evictions.
TEST_F(Scenario, S12_APinnedPodIsLeftWhereThatIsAllowed) {
  add(a_workload("StatefulSet", "db", 1, {{"terminationGracePeriodSeconds", 8}, {"tolerations", tolerate_cordon}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_pod("slow", {.grace = 120}));
  options.policy.pinned = drain::Treatment::skip;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_FALSE(told.raised("PodPinned"));
  EXPECT_THAT(pods_on("n1"), ElementsAre("db-0"));
  EXPECT_GE(told.count(EventType::left, "shop/db-0"), 1u);
  const auto left = std::find_if(report.pods.begin(), report.pods.end(),
                                 [](const auto& each) { return each.outcome == PodOutcome::skipped; });
  ASSERT_NE(left, report.pods.end());
  EXPECT_EQ(left->reason, "PodPinned");
}

// With --disable-eviction kubectl stops at the first deletion that fails. Haulout continues.
TEST_F(Scenario, APodThatCannotBeDeletedHoldsNoOtherUp) {
  add_pods(4);
  options.delete_instead_of_evict = true;
  options.max_concurrent = 1;
  options.timeout = 2min;
  cluster.server().intercept([](const sim::Call&, const sim::AuditEntry& entry) {
    const bool refused = entry.verb == "delete" && entry.resource == "pods" && entry.name == "web-0";
    return refused ? std::optional<http::Response>({500, {}, "no"}) : std::nullopt;
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(pods_on("n1"), ElementsAre("web-0"));
  EXPECT_THAT(evictions(), IsEmpty());
}

TEST_F(Scenario, S13_PodForceDeletedByAHuman) {
  add_pods(1);
  add(a_budget("closed", {{"maxUnavailable", 0}}));
  after(20s, [this] { cluster.remove("pods", "shop", "web-0"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::gone);
  EXPECT_LT(took(), 20500ms);
}

TEST_F(Scenario, S14_EvictionOfAPodThatIsGone) {
  add_pods(2);
  cluster.server().intercept([this](const sim::Call&, const sim::AuditEntry& entry) {
    if (entry.subresource == "eviction" && entry.name == "web-0") cluster.remove("pods", "shop", "web-0");
    return std::optional<http::Response>();
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::gone) << "not ours to count";
  EXPECT_EQ(pod(report, "web-1").outcome, PodOutcome::evicted);
  EXPECT_THAT(evictions(), SizeIs(2)) << "asked once";
}

TEST_F(Scenario, S15_FinalizerHoldsOnePodOthersGoOn) {
  add_pods(5);
  add(a_pod("held", {.grace = 1, .metadata = {{"finalizers", {"example.com/backup"}}}}));
  options.timeout = 2min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_TRUE(told.raised("PodFinalizer"));
  EXPECT_LE(*told.time_of(EventType::diagnosis_raised, "PodFinalizer") - *told.time_of(EventType::evicted, "shop/held"),
            32s);
  EXPECT_THAT(pods_on("n1"), ElementsAre("held"));
  EXPECT_EQ(pod(report, "held").outcome, PodOutcome::terminating);
}

TEST_F(Scenario, S15_FinalizerRemovedLater) {
  add(a_pod("held", {.grace = 1, .metadata = {{"finalizers", {"example.com/backup"}}}}));
  after(60s, [this] { cluster.patch("pods", "shop", "held", {{"metadata", {{"finalizers", nullptr}}}}); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.withdrawn("PodFinalizer"));
  EXPECT_THAT(report.diagnoses, IsEmpty());
}

TEST_F(Scenario, S17_AnHourOfGraceIsNoAlarm) {
  add(a_pod("slow", {.grace = 3600}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 1h);
  EXPECT_EQ(told.count(EventType::parked), 0u);
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
  EXPECT_EQ(evictions().size(), 1u);
}

// The kubelet kills the pod at the end of its grace period. The drain does not shorten that.
TEST_F(Scenario, S18_APreStopHookOutlastsTheGracePeriod) {
  add(a_pod("hangs", {.grace = 45, .annotations = {{"sim.haulout.dev/terminates-after", "1h"}}}));
  add_pods(2, {.grace = 5});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  const auto& hangs = pod(report, "hangs");
  EXPECT_EQ(hangs.outcome, PodOutcome::evicted);
  EXPECT_GE(*hangs.vanished_at - *hangs.evicted_at, 44900ms);
  EXPECT_LT(took(), 46s);
  EXPECT_THAT(evictions(), SizeIs(3));
  for (const auto& entry : cluster.audit()) {
    EXPECT_FALSE(entry.grace_seconds) << entry.text();
    EXPECT_NE(entry.verb, "delete");
  }
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
}

TEST_F(Scenario, S45_SchedulerRaceBindsAPodAfterTheCordon) {
  add_pods(1);
  after(2s, [this] { cluster.create("pods", a_pod("late")); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted);
  EXPECT_EQ(told.count(EventType::late_pod, "shop/late"), 1u);
}

TEST_F(Scenario, S46_NotDrainedBeforeTheSettleTimeIsOver) {
  after(3s, [this] { cluster.create("pods", a_pod("late", {.grace = 1})); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted);
  EXPECT_GE(took(), 5s);
}

TEST_F(Scenario, DrainedInTheMomentInWhichTheLastPodVanishes) {
  no_latency();
  for (const int grace : {7, 11, 20}) add(a_pod("after-" + std::to_string(grace), {.grace = grace}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(report.finished_at - pod(report, "after-20").vanished_at.value(), 0s);
}

TEST_F(Scenario, S47_DaemonSetPodsAreLeftButTheOrphan) {
  for (int i = 0; i < 28; ++i) add(a_workload("DaemonSet", "agent-" + std::to_string(i), 0, {}));
  add(a_pod("orphan", {.owner_kind = "DaemonSet", .owner_name = "deleted", .owner_uid = "deleted-uid"}));
  add(a_pod("kruise", {.owner_kind = "DaemonSet",
                       .owner_name = "adv",
                       .owner_uid = "adv-uid",
                       .owner_api = "apps.kruise.io/v1alpha1"}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  ASSERT_THAT(evictions(), SizeIs(1));
  EXPECT_EQ(evictions()[0].name, "orphan");
  EXPECT_THAT(pods_on("n1"), SizeIs(29));
}

TEST_F(Scenario, S48_DaemonSetRecreatedUnderTheSameName) {
  add(a_pod("old", {.owner_kind = "DaemonSet", .owner_name = "log", .owner_uid = "first-uid"}));
  add(a_workload("DaemonSet", "log", 0, {}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  ASSERT_THAT(evictions(), SizeIs(1));
  EXPECT_EQ(evictions()[0].name, "old");
}

TEST_F(Scenario, S49_MirrorPodsAreNeverTouched) {
  for (int i = 0; i < 4; ++i)
    add(a_pod("static-" + std::to_string(i), {.owner_kind = "Node",
                                              .owner_name = "n1",
                                              .owner_uid = "n1-uid",
                                              .owner_api = "v1",
                                              .phase = i == 3 ? "Succeeded" : "Running",
                                              .annotations = {{"kubernetes.io/config.mirror", "x"}}}));
  options.policy.finished = drain::Treatment::evict;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evictions(), IsEmpty());
}

TEST_F(Scenario, S50_FinishedPodsAreLeft) {
  add_pods(50, {.phase = "Succeeded", .ready = false}, "job");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_THAT(pods_on("n1"), SizeIs(50));
}

// The pod is already terminating, but it still exists, and policy refuses it.
TEST_F(Scenario, APodOnItsWayOutThatPolicyKeepsIsNamedWithItsReason) {
  add(a_pod("bare", {.grace = 600, .owner_kind = ""}));
  cluster.delete_gracefully("pods", "shop", "bare");
  options.policy.unmanaged = drain::Treatment::refuse;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message, ::testing::HasSubstr("shop/bare (Unmanaged)"));
  EXPECT_EQ(pod(report, "bare").outcome, PodOutcome::refused);
}

TEST_F(Scenario, P3_APodThatAnEarlierDrainHasEvictedIsWaitedForUntilItHasGone) {
  add(a_pod("held", {.grace = 1, .metadata = {{"finalizers", {"example.com/hold"}}}}));
  cluster.delete_gracefully("pods", "shop", "held");
  after(0s, [this] { EXPECT_EQ(sim::text(cluster.get("pods", "shop", "held"), "/status/phase"), "Failed"); });
  after(5min, [this] { cluster.patch("pods", "shop", "held", {{"metadata", {{"finalizers", nullptr}}}}); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 5min);
  EXPECT_TRUE(pod(report, "held").vanished_at);
}

TEST_F(Scenario, S75_PriorityOrdering) {
  add(a_pod("dns", {.spec = {{"priority", 2000000000}, {"priorityClassName", "system-cluster-critical"}}}));
  add_pods(3);
  add(a_pod("batch", {.spec = {{"priority", -100}}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  std::vector<std::string> order;
  for (const auto& entry : evictions()) order.push_back(entry.name);
  ASSERT_THAT(order, SizeIs(5));
  EXPECT_EQ(order.front(), "batch");
  EXPECT_EQ(order.back(), "dns");
}

TEST_F(Scenario, S75_RulesAndAnnotationsComeBeforePriorities) {
  options.order = {*drain::parse_order_rule("app=db=10"), *drain::parse_order_rule("app=-10")};
  add(a_pod("dns", {.spec = {{"priority", 2000000000}, {"priorityClassName", "system-cluster-critical"}}}));
  add(a_pod("db", {.labels = {{"app", "db"}}, .spec = {{"priority", -100}}}));
  add(a_pod("web", {.labels = {{"app", "web"}}, .spec = {{"priority", 100}}}));
  add(a_pod("other"));
  add(a_pod("last", {.labels = {{"app", "web"}}, .annotations = {{"haulout.dev/drain-order", "11"}}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  std::vector<std::string> order;
  for (const auto& entry : evictions()) order.push_back(entry.name);
  EXPECT_THAT(order, ElementsAre("web", "other", "dns", "db", "last"));
}

TEST_F(Scenario, S76_OneForbiddenPodAmongTwentyStopsEverything) {
  options.policy.unmanaged = drain::Treatment::refuse;
  options.policy.empty_dir = drain::Treatment::refuse;
  add_pods(18);
  add(a_pod("naked", {.owner_kind = ""}));
  add(a_pod("scratch", {.spec = {{"volumes", {{{"name", "tmp"}, {"emptyDir", Json::object()}}}}}}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_THAT(requests("patch", "nodes"), IsEmpty());
  EXPECT_FALSE(unschedulable());
  EXPECT_EQ(pod(report, "naked").outcome, PodOutcome::refused);
  EXPECT_EQ(pod(report, "scratch").outcome, PodOutcome::refused);
  EXPECT_THAT(report.message,
              ::testing::AllOf(::testing::HasSubstr("shop/naked"), ::testing::HasSubstr("shop/scratch")));
}

TEST_F(Scenario, S71_DryRunServerMutatesNothingAndWaitsForNothing) {
  add_pods(10, {.labels = {{"app", "web"}}});
  add(a_budget("web", {{"minAvailable", 9}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  options.dry_run = drain::DryRunMode::server;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(report.message, ::testing::HasSubstr("shop/web selects 10 of them and allows 1 disruption now"));
  EXPECT_THAT(pods_on("n1"), SizeIs(10));
  EXPECT_FALSE(unschedulable());
  EXPECT_LT(took(), 2s);
  for (const auto& entry : cluster.audit())
    if (entry.verb == "create" && entry.subresource == "eviction") EXPECT_TRUE(entry.dry_run);
}

// The API server ignores the query of a DELETE with a body. So dryRun in the query alone would delete the pod.
TEST_F(Scenario, DryRunServerDeletesNothingEither) {
  add_pods(3);
  options.dry_run = drain::DryRunMode::server;
  options.delete_instead_of_evict = true;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(pods_on("n1"), SizeIs(3));
  std::size_t asked = 0;
  for (const auto& entry : cluster.audit()) {
    if (entry.verb != "delete") continue;
    EXPECT_TRUE(entry.dry_run) << entry.name;
    ++asked;
  }
  EXPECT_EQ(asked, 3u);
  EXPECT_FALSE(unschedulable());
}

// The server exempts pods that are not Ready from a budget that has enough healthy pods without them. So the dry run
// counts only the four Ready pods.
TEST_F(Scenario, DryRunCountsAgainstABudgetOnlyWhatItHolds) {
  add_pods(4, {.labels = {{"app", "web"}}});
  for (const char* name : {"sick-0", "sick-1"}) add(a_pod(name, {.ready = false, .labels = {{"app", "web"}}}));
  add(a_budget("web", {{"minAvailable", 3}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  for (const drain::DryRunMode mode : {drain::DryRunMode::client, drain::DryRunMode::server}) {
    options.dry_run = mode;
    EXPECT_THAT(drain().message, ::testing::HasSubstr("shop/web selects 4 of them and allows 1 disruption now"));
  }
  cluster.patch("poddisruptionbudgets", "shop", "web",
                {{"spec", {{"minAvailable", 0}, {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}});
  EXPECT_THAT(drain().message, ::testing::Not(::testing::HasSubstr("at once")));
}

TEST_F(Scenario, DryRunDoesNotSayDrainedOfAPodThatPolicyKeeps) {
  add_pods(2);
  add(a_pod("kept", {.annotations = {{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"}}}));
  options.policy.do_not_disrupt = drain::Treatment::park;
  for (const drain::DryRunMode mode : {drain::DryRunMode::client, drain::DryRunMode::server}) {
    options.dry_run = mode;
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::blocked));
    EXPECT_THAT(report.message, ::testing::HasSubstr("2 pods could be evicted now, 1 could not"));
    EXPECT_THAT(pod(report, "kept").reason, "DoNotDisrupt");
  }
  EXPECT_EQ(told.count(EventType::parked, "shop/kept"), 2u) << "whoever watches is told, too";
}

TEST_F(Scenario, WhatComesToTerminateForTooLongIsNotWaitedForEither) {
  options.policy.skip_terminating_after = 60s;
  add_pods(2, {.grace = 5});
  add(a_pod("dead", {.grace = 20, .annotations = {{"sim.haulout.dev/never-terminates", "true"}}}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "dead").outcome, PodOutcome::skipped);
  EXPECT_EQ(pod(report, "dead").reason, "TerminatingTooLong");
  EXPECT_EQ(told.count(EventType::left, "shop/dead"), 1u);
  // The deletionTimestamp is the time of the eviction plus the pod's grace period.
  EXPECT_GT(took(), 80s);
  EXPECT_LT(took(), 85s);
}

TEST_F(Scenario, WhatSomebodyElseDeletesIsSaidToTerminate) {
  add(a_pod("leaving", {.grace = 50}));
  add(a_pod("blocked", {.grace = 40, .labels = {{"app", "web"}}}));
  add(a_budget("web", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  cluster.delete_gracefully("pods", "shop", "leaving");
  after(10s, [this] { cluster.delete_gracefully("pods", "shop", "blocked"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(told.count(EventType::terminating, "shop/leaving"), 1u);
  EXPECT_EQ(told.count(EventType::terminating, "shop/blocked"), 1u);
  EXPECT_EQ(told.count(EventType::evicted, "shop/leaving"), 0u);
}

// The watch never delivered this pod. The drain knows it only from another list, and it is deleted before a new list.
TEST_F(Scenario, APodThatTheWatchNeverKnewIsGoneWhenTheViewIsListedAnew) {
  add_pods(1, {.grace = 5});
  after(1s, [this] { cluster.lag_watches(1h); });
  after(30s, [this] { cluster.create("pods", a_pod("unseen", {.grace = 5})); });
  after(2min, [this] {
    cluster.compact();
    cluster.close_watches();
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(drain::Outcome::drained));
  EXPECT_EQ(pod(report, "unseen").outcome, drain::PodOutcome::evicted);
  EXPECT_LT(took(), 3min);
}

}  // namespace
}  // namespace haulout::scenario
