// Faults of the API server and of the connection to it: restarts, watches that end, hang or deliver wrong events,
// broken answers, slow answers.
#include "tests/scenario/replaying_transport.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Scenario, S01_ApiServerRestartInTheMiddle) {
  add_pods(12, {.grace = 15});
  after(5s, [this] { cluster.restart(20s); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 12u);
  for (const auto& entry : evictions()) EXPECT_FALSE(entry.grace_seconds);
}

// The server's cache has the state from before the evictions, without the pod that was created later. A list from the
// cache would return that state.
TEST_F(Scenario, S02_RestartOntoAnOlderCache) {
  add_pods(5, {.grace = 8});
  after(0s, [this] { cluster.lag_cache(1h); });
  after(7s, [this] {
    cluster.create("pods", a_pod("late", {.grace = 3}));
    cluster.restart(5s);
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evictions(), SizeIs(6)) << "each pod once; none has come back to life";
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted);
  EXPECT_THAT(pods_on("n1"), IsEmpty());
}

// A list or watch from the server's cache would show an empty node.
TEST_F(Scenario, S02_AnOlderCacheDoesNotProveThatTheNodeIsEmpty) {
  after(0s, [this] { cluster.lag_cache(1h); });
  after(1s, [this] { cluster.lag_watches(1h); });
  after(2s, [this] { cluster.create("pods", a_pod("late", {.grace = 3})); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted);
  EXPECT_THAT(pods_on("n1"), IsEmpty());
}

// A caching proxy between the drain and the server drops field selectors, so lists contain pods of other nodes. The
// drain does not use such lists.
TEST_F(Scenario, P11_PodsOfOtherNodesAreNoneOfOurs) {
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  way = &faults;
  add_pods(2, {.grace = 2});
  add(a_pod("elsewhere", {.node = "n2"}));
  faults.add({.verb = "list", .resource = "pods", .until = clock.now() + 30s, .fault = {sim::FaultKind::unselected}});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 25s) << "its lists are no lists of our pods";
  EXPECT_THAT(evictions(), SizeIs(2));
  EXPECT_THAT(pods_on("n2"), SizeIs(1));
  EXPECT_GE(told.count(EventType::disconnected), 1u);
}

TEST_F(Scenario, P11_AWatchThatTellsOfOtherNodesTellsNothing) {
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  way = &faults;
  add_pods(1, {.grace = 60});
  add(a_node("n0"));
  for (const char* resource : {"pods", "nodes"})
    faults.add({.verb = "watch", .resource = resource, .fault = {sim::FaultKind::unselected}});
  after(5s, [this] {
    cluster.create("pods", a_pod("elsewhere", {.node = "n2"}));
    cluster.cordon("n0");
  });
  for (int i = 6; i < 90; ++i)
    after(i * 1s, [this, i] {
      cluster.patch("pods", "shop", "elsewhere", {{"metadata", {{"annotations", {{"times", std::to_string(i)}}}}}});
    });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evictions(), SizeIs(1));
  EXPECT_THAT(pods_on("n2"), SizeIs(1));
  EXPECT_THAT(report.pods, SizeIs(1)) << "the other node's pod is no pod of this drain";
  EXPECT_GE(told.count(EventType::disconnected), 1u);
}

// After the first answer, the server answers 401 for a while, for example because its authentication webhook is down.
// The drain tries again, even with `fail_fast`.
TEST_F(Scenario, A401AfterTheFirstAnswerIsNoEnd) {
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  way = &faults;
  options.fail_fast = true;
  add_pods(2, {.grace = 2});
  faults.add(
      {.verb = "list", .resource = "pods", .count = 3, .fault = {.kind = sim::FaultKind::server_error, .code = 401}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(faults.struck(), SizeIs(3));
}

// When the first node's preflight has reached the server, the later nodes of the same run do not fail fast.
TEST_F(Scenario, OfSeveralNodesOnlyTheFirstFailsFast) {
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  options.fail_fast = true;
  auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    co_await clock.sleep_until(clock.now() + 5s);
    k8s::Client client(faults, clock, {k8s::FieldValidation::strict});
    drain::Drain first(client, rng, told, options, "n1"), second(client, rng, told, options, "n2"),
        third(client, rng, told, options, "n3");
    EXPECT_TRUE(co_await first.preflight());
    faults.add(
        {.verb = "get", .resource = "nodes", .count = 1, .fault = {.kind = sim::FaultKind::server_error, .code = 401}});
    faults.add({.verb = "get", .resource = "nodes", .count = 6, .fault = {.kind = sim::FaultKind::refuse}});
    EXPECT_TRUE(co_await second.preflight());
    EXPECT_THAT(faults.struck(), SizeIs(7));
    cluster.forbid("get", "nodes");
    const TimePoint asked = clock.now();
    EXPECT_FALSE(co_await third.preflight());
    EXPECT_LT(clock.now() - asked, 5s);
    EXPECT_TRUE(third.report().connection_failed);
  };
  run(with_task_group(body));
}

TEST_F(Scenario, ADaemonSetThatCannotBeReadDelaysTheDrainForAMinuteAtMost) {
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  way = &faults;
  add_pods(2, {.grace = 2});
  for (int i = 0; i < 3; ++i) add(a_workload("DaemonSet", "agent-" + std::to_string(i), 0, {}));
  faults.add({.verb = "get", .resource = "daemonsets", .fault = {.kind = sim::FaultKind::server_error, .code = 500}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 75s);
  EXPECT_EQ(told.count(EventType::disconnected), told.count(EventType::reconnected));
  EXPECT_GE(told.count(EventType::disconnected), 1u);
}

TEST_F(Scenario, S03_WatchClosedSilentlyAgainAndAgain) {
  add_pods(5, {.grace = 60});
  for (int i = 1; i < 40; ++i) after(i * 3s, [this] { cluster.close_watches(); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(requests("watch", "pods").size(), 45u) << "a busy loop";
  EXPECT_LE(requests("list", "pods").size(), 4u) << "the place in the stream is known, no list is needed";
}

TEST_F(Scenario, S04_WatchBlackHole) {
  add_pods(3, {.grace = 20});
  after(5s, [this] { cluster.silence_watches(); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(took(), 130s) << "bookmarks come every 60 s; twice that in silence is too long";
}

TEST_F(Scenario, S05_WatchCutInsideALine) {
  add_pods(6, {.grace = 10});
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add({.verb = "watch",
              .resource = "pods",
              .count = 5,
              .fault = {.kind = sim::FaultKind::half_line, .after_pieces = 2}});
  way = &faults;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(requests("watch", "pods").size(), 2u);
}

TEST_F(Scenario, S06_ExpiredInsideTheStream) {
  add_pods(5, {.grace = 30});
  after(2s, [this] {
    cluster.drop_connections();
    cluster.remove("pods", "shop", "web-4");
    cluster.compact();
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  const auto gone = told.time_of(EventType::vanished, "shop/web-4");
  ASSERT_TRUE(gone);
  EXPECT_LE(*gone - told.entries.front().at, 10s) << "no watch has told of it, and the others take 30 s";
  EXPECT_GE(requests("list", "pods").size(), 3u) << "preflight, the relist, the proof at the end";
}

TEST_F(Scenario, S07_ExpiredContinueTokens) {
  add_pods(30);
  options.page_size = 7;
  options.max_concurrent = 0;
  int expiries = 0;
  cluster.server().intercept([&](const sim::Call&, const sim::AuditEntry& entry) {
    if (entry.verb == "list" && entry.resource == "pods" && entry.query.find("continue=") != std::string::npos &&
        ++expiries <= 3)
      cluster.expire_continue_tokens();
    return std::optional<http::Response>();
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(report.pods, SizeIs(30));
  std::size_t expired = 0, unlimited = 0;
  for (const auto& list : requests("list", "pods")) {
    expired += list.status == 410 ? 1 : 0;
    if (list.query.find("limit=") != std::string::npos) continue;
    EXPECT_GE(expired, 2u) << "only the third time all of it at once";
    ++unlimited;
  }
  EXPECT_GE(expired, 2u);
  EXPECT_EQ(unlimited, 1u);
}

TEST_F(Scenario, S08_HoursOfBookmarksKeepThePlace) {
  add(a_pod("slow", {.grace = 4 * 3600}));
  after(2h, [this] {
    cluster.compact();
    cluster.close_watches();
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(requests("list", "pods").size(), 3u);
}

TEST_F(Scenario, S09_ResourceVersionTooLargeAfterAnEtcdRestore) {
  add_pods(3, {.grace = 20});
  after(2s, [this] {
    cluster.restore_etcd(cluster.revision() - 4);
    cluster.restart(1s);
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(pods_on("n1"), IsEmpty());
  // The watch of the budgets had a revision newer than the backup. The server rejects that revision, and the drain
  // lists the budgets again.
  EXPECT_THAT(requests("list", "poddisruptionbudgets"), SizeIs(2));
}

// After the restore, a watch of the budgets from a revision in the future would deliver no events up to that revision.
// The drain must learn nevertheless that the budget allows disruptions.
TEST_F(Scenario, S09_ABudgetThatOpensAfterAnEtcdRestoreIsHeardOf) {
  add_pods(3, {.grace = 2});
  add(a_budget("web", {{"minAvailable", 3}}));
  std::uint64_t backup = 0;
  after(5s, [&] {
    backup = cluster.revision();
    for (int i = 0; i < 200; ++i)
      cluster.patch("poddisruptionbudgets", "shop", "web",
                    {{"metadata", {{"annotations", {{"noise", std::to_string(i)}}}}}});
  });
  after(10s, [&] {
    cluster.restore_etcd(backup);
    cluster.restart(1s);
  });
  after(20s, [this] { cluster.patch("poddisruptionbudgets", "shop", "web", {{"spec", {{"minAvailable", 0}}}}); });
  options.timeout = 10min;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 1min);
}

// After the restore, a watch from a revision in the future reports neither that a waiting pod lost its protection nor
// that a waiting pod was deleted. The drain must learn both nevertheless.
TEST_F(Scenario, S09_WhatBecomesOfPodsThatWaitAfterAnEtcdRestoreIsHeardOf) {
  add_bystander();
  add(a_pod("kept",
            {.grace = 1, .labels = {{"app", "kept"}}, .annotations = {{"karpenter.sh/do-not-disrupt", "true"}}}));
  add_pods(2, {.grace = 1, .labels = {{"app", "web"}}});
  add(a_budget("web", {{"minAvailable", 2}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  options.policy.do_not_disrupt = drain::Treatment::park;
  options.timeout = 20min;
  restore_unheard(5s, 10s);
  after(15s, [this] {
    cluster.patch("pods", "shop", "kept",
                  {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", nullptr}}}}}});
    for (const char* name : {"web-0", "web-1"}) cluster.remove("pods", "shop", name);
    stir_bystander(300);
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 6min);
}

TEST_F(Scenario, S58_AThousandPodsBehindTenBudgets) {
  options.max_concurrent = 50;
  for (int b = 0; b < 10; ++b) {
    const std::string app = "app-" + std::to_string(b);
    add(a_budget(app, {{"minAvailable", 0}, {"selector", {{"matchLabels", {{"app", app}}}}}}));
    add_pods(100, {.grace = 5, .labels = {{"app", app}}}, app);
  }
  std::size_t asked = 0, most_asked = 0, leaving = 0, most_leaving = 0;
  cluster.server().intercept([&](const sim::Call&, const sim::AuditEntry& entry) {
    if (entry.subresource == "eviction") most_asked = std::max(most_asked, ++asked);
    return std::optional<http::Response>();
  });
  cluster.server().on_answer([&](const sim::AuditEntry& entry) { asked -= entry.subresource == "eviction" ? 1u : 0u; });
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "pods" || !sim::terminating(*change.object)) return;
    if (change.type == sim::ChangeType::deleted)
      --leaving;
    else if (!sim::terminating(*change.before))
      most_leaving = std::max(most_leaving, ++leaving);
  });
  const auto report = drain();
  EXPECT_LE(most_asked, 10u) << "one request for each budget";
  EXPECT_LE(most_leaving, 50u);
  EXPECT_GE(most_leaving, 40u) << "and the places are used";
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 1000u);
  EXPECT_LE(cluster.audit().size(), 1000u + 60u);
  EXPECT_LE(told.entries.size(), 5000u);
}

TEST_F(Scenario, S59_TwoHundredPodsVanishWithinOneSecond) {
  options.max_concurrent = 0;
  add_pods(200, {.grace = 1});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const auto& pod_report : report.pods) EXPECT_EQ(pod_report.outcome, PodOutcome::evicted) << pod_report.name;
}

TEST_F(Scenario, S60_SlowApiServer) {
  add_pods(8, {.grace = 5});
  after(1ms, [this] { cluster.timing().api_latency = 25s; });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(evictions().size(), 8u) << "an answer that takes 25 s is no reason to ask twice";
  EXPECT_GE(took(), 50s) << "the evictions and the proof: two answers at least were slow";
}

TEST_F(Scenario, S61_TruncatedListIsNoShorterList) {
  add_pods(20);
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add({.verb = "list", .resource = "pods", .count = 2, .fault = {.kind = sim::FaultKind::truncate}});
  way = &faults;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(report.pods, SizeIs(20));
  EXPECT_THAT(faults.struck(), SizeIs(2));
}

TEST_F(Scenario, S62_HtmlIsNotZeroPods) {
  add_pods(3);
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  sim::FaultRule everything;
  everything.fault.kind = sim::FaultKind::html;
  faults.add(everything);
  way = &faults;
  options.fail_fast = true;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(report.connection_failed);
  EXPECT_THAT(pods_on("n1"), SizeIs(3));
}

// The node has no pods, which a wrong node name could also explain. But the server returns the Node, so its name is
// correct, and the drain raises no diagnosis.
TEST_F(Scenario, S63_ANodeWithoutPodsIsDrainedAndThatIsCounted) {
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(report.message, HasSubstr("0 pods deleted"));
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
  const auto lists = requests("list", "pods");
  ASSERT_GE(lists.size(), 2u) << "before and, once settled, after";
  EXPECT_LE(requests("get", "nodes").at(0).answered, lists.front().time);
  for (const auto& list : lists) EXPECT_THAT(list.query, HasSubstr("spec.nodeName%3Dn1"));
}

class Replays : public Scenario {
 protected:
  // Events come twice, late or out of order. Six pods must still cause six evictions and six reported ends.
  void expect_nothing_new(ReplayingTransport::How how, std::function<void()> in_the_middle = [] {}) {
    add_pods(6, {.grace = 10});
    ReplayingTransport replay(cluster.api(), clock, how);
    way = &replay;
    options.max_concurrent = 3;
    after(5s, std::move(in_the_middle));
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::drained));
    EXPECT_GT(replay.struck(), 0u);
    EXPECT_EQ(evictions().size(), 6u);
    EXPECT_EQ(told.count(EventType::evicted), 6u);
    EXPECT_EQ(told.count(EventType::vanished), 6u);
    EXPECT_EQ(told.count(EventType::late_pod), 0u);
    EXPECT_LT(took(), 30s);
  }
};

TEST_F(Replays, S73_ReplayedEventsChangeNothing) {
  expect_nothing_new(ReplayingTransport::How::twice);
}

TEST_F(Replays, S73_EventsInAnotherOrderChangeNothing) {
  expect_nothing_new(ReplayingTransport::How::swapped);
}

TEST_F(Replays, S73_EventsRepeatedByAnOlderCacheChangeNothing) {
  expect_nothing_new(ReplayingTransport::How::from_the_start, [this] { cluster.close_watches(); });
}

TEST_F(Scenario, S19_AnswerLostAfterTheEvictionTookEffect) {
  add_pods(4);
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add(
      {.verb = "create", .resource = "pods/eviction", .count = 4, .fault = {.kind = sim::FaultKind::reset_after}});
  way = &faults;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const auto& pod_report : report.pods) EXPECT_EQ(pod_report.outcome, PodOutcome::evicted);
  EXPECT_EQ(told.count(EventType::vanished), 4u);
}

}  // namespace
}  // namespace haulout::scenario
