#include "tests/agent/gates/node_gates_fixture.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using scenario::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Verdict = Gate::Verdict;
using When = GateQuestion::When;

TEST_F(NodeGatesTest, EachGateHasItsRow) {
  const GateAnswer answer = ask();
  std::vector<std::string> names;
  for (const Gate& gate : answer.gates) {
    names.push_back(gate.name);
    EXPECT_NE(gate.message, "") << gate.name;
  }
  EXPECT_THAT(names, ElementsAre("window", "pause-node", "cordon", "reboot-brake", "pause-pool", "pause-cluster",
                                 "blocking-pods", "prometheus", "fleet"));
  EXPECT_TRUE(answer.open());
  EXPECT_EQ(row(answer, "blocking-pods").verdict, Verdict::off);
  EXPECT_EQ(row(answer, "prometheus").verdict, Verdict::off);
  EXPECT_EQ(gates->last(), answer.gates);
}

TEST_F(NodeGatesTest, OutsideOfItsWindowANodeAsksNobody) {
  options.schedule = schedule({"Sat 01:00+4h"});
  with_prometheus = true;
  const GateAnswer answer = ask();
  EXPECT_EQ(answer.reason(), "OutsideWindow");
  EXPECT_THAT(cluster.audit(), IsEmpty());
  EXPECT_THAT(prometheus.requests, IsEmpty());
  for (const char* name : {"pause-pool", "pause-cluster", "prometheus", "fleet"})
    EXPECT_EQ(row(answer, name).verdict, Verdict::not_asked) << name;
}

TEST_F(NodeGatesTest, ForPeopleEveryGateIsAsked) {
  options.schedule = schedule({"Sat 01:00+4h"});
  with_prometheus = true;
  pause({{"pause", because("freeze")}});
  const GateAnswer answer = ask(When::any_time);
  EXPECT_EQ(answer.reason(), "OutsideWindow");
  EXPECT_THAT(answer.message(), HasSubstr("; the cluster is paused: freeze"));
  EXPECT_EQ(row(answer, "prometheus").verdict, Verdict::open);
}

TEST_F(NodeGatesTest, PausesOfNodePoolAndCluster) {
  pause({{"pause.other", because("not us")}});
  EXPECT_TRUE(ask().open());
  cluster.patch("configmaps", "haulout", "haulout", {{"data", {{"pause.web", because("new storage")}}}});
  EXPECT_EQ(ask().message(), "pool web is paused: new storage");
  cluster.patch("configmaps", "haulout", "haulout", {{"data", {{"pause.web", nullptr}, {"pause", because("freeze")}}}});
  EXPECT_EQ(ask().message(), "the cluster is paused: freeze");
  EXPECT_EQ(ask(When::under_way).message(), "the cluster is paused: freeze");
  question.node.annotations["haulout.dev/pause"] = "2026-01-01T06:00:00Z; disk swap";
  const GateAnswer both = ask();
  EXPECT_EQ(both.message(), "this node is paused until 2026-01-01T06:00:00Z: disk swap");
  EXPECT_EQ(both.look_again(), utc("2026-01-01T06:00"));
  EXPECT_NE(both.closed_with(Gate::Effect::gives_up), nullptr);
}

TEST_F(NodeGatesTest, WithoutTheRightToReadThemPausesAreOffAndSaySo) {
  for (const char* verb : {"get", "list", "watch"}) cluster.forbid(verb, "configmaps");
  pause({{"pause", because("freeze")}});
  const GateAnswer answer = ask();
  EXPECT_TRUE(answer.open());
  for (const char* name : {"pause-pool", "pause-cluster"}) {
    EXPECT_EQ(row(answer, name).verdict, Verdict::off);
    EXPECT_THAT(row(answer, name).message, HasSubstr("may not read ConfigMap haulout/haulout"));
  }
  EXPECT_TRUE(ask(When::under_way).open());
  for (const char* verb : {"get", "list", "watch"}) cluster.permit(verb, "configmaps");
  EXPECT_EQ(ask().reason(), "Paused") << "the right was given later";
}

TEST_F(NodeGatesTest, APauseThatNobodyCanReadHoldsAndGivesNothingUp) {
  EXPECT_TRUE(ask().open());
  cluster.forbid("get", "configmaps");
  const GateAnswer lost = ask();
  EXPECT_EQ(lost.reason(), "PauseUnknown") << "a right that was there once";
  EXPECT_NE(lost.look_again(), std::nullopt);
  EXPECT_EQ(ask(When::under_way).closed_with(Gate::Effect::gives_up), nullptr);
  EXPECT_FALSE(ask(When::under_way).open());
}

TEST_F(NodeGatesTest, AnApiServerThatIsAwayClosesWhatItWouldDecide) {
  cluster.refuse_connections(1h);
  EXPECT_EQ(ask().reason(), "PauseUnknown");
}

TEST_F(NodeGatesTest, APauseWakesWhoeverWaits) {
  EXPECT_TRUE(ask().open());
  EXPECT_LT(woken_by([&] { pause({{"pause", because("freeze")}}); }), 1s);
  EXPECT_EQ(ask().reason(), "Paused");
  EXPECT_LT(woken_by([&] { cluster.remove("configmaps", "haulout", "haulout"); }), 1s);
  EXPECT_TRUE(ask().open());
}

TEST_F(NodeGatesTest, OtherKeysWakeNobody) {
  pause({{"pause.other", because("not us")}});
  EXPECT_TRUE(ask().open());
  EXPECT_GE(woken_by([&] {
              cluster.patch("configmaps", "haulout", "haulout", {{"data", {{"pause.other", nullptr}}}});
              cluster.after(1h,
                            [&] { cluster.patch("configmaps", "haulout", "haulout", {{"data", {{"pause", ""}}}}); });
            }),
            1h);
}

// P10: while a drain is under way, the gates do not read again what a watch already follows.
TEST_F(NodeGatesTest, ADrainUnderWayReadsItsPausesFromTheWatch) {
  std::size_t before = 0;
  in_the_world([&]() -> boost::asio::awaitable<void> {
    question.when = When::under_way;
    static_cast<void>(co_await gates->ask(question, clock.now() + 30s));
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(gates->changed());
      co_await clock.sleep_until(clock.now() + 5s);
      before = cluster.audit().size();
      for (int i = 0; i < 10; ++i) EXPECT_TRUE((co_await gates->ask(question, clock.now() + 30s)).open());
    });
  });
  EXPECT_EQ(cluster.audit().size(), before);
}

TEST_F(NodeGatesTest, WhatIsFollowedGrowsWithWhatIsAsked) {
  pause({{"pause", because("freeze")}});
  TimePoint woken{};
  in_the_world([&]() -> boost::asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn([](NodeGates& all, Clock& now, TimePoint& at) -> boost::asio::awaitable<void> {
        co_await all.changed();
        at = now.now();
      }(*gates, clock, woken));
      co_await clock.sleep_until(clock.now() + 1min);
      EXPECT_EQ((co_await gates->ask(question, clock.now() + 30s)).reason(), "Paused");
      cluster.after(1min, [&] { cluster.remove("configmaps", "haulout", "haulout"); });
      co_await group.join();
    });
  });
  EXPECT_LT(woken - start, 2min + 2s);
}

TEST_F(NodeGatesTest, ABlockingPodHoldsUntilItIsGone) {
  options.blocking_pod_selectors = {"app=batch", "app in (backup, restore)"};
  scenario::PodSpec batch;
  batch.labels = {{"app", "batch"}};
  add(scenario::a_pod("batch-0", batch));
  batch.node = "n2";
  batch.labels = {{"app", "backup"}};
  add(scenario::a_pod("elsewhere-0", batch));
  batch.node = "n1";
  batch.phase = "Succeeded";
  add(scenario::a_pod("over-0", batch));
  const GateAnswer closed = ask();
  EXPECT_EQ(closed.reason(), "BlockedByPod");
  EXPECT_EQ(closed.message(),
            "pod shop/batch-0 matches --blocking-pod-selector app=batch: the node waits until the pod has ended");
  EXPECT_EQ(row(closed, "fleet").verdict, Verdict::not_asked);
  EXPECT_LT(woken_by([&] { cluster.remove("pods", "shop", "batch-0"); }), 1s);
  EXPECT_TRUE(ask().open());
}

TEST_F(NodeGatesTest, PodsThatNobodyCanListBlock) {
  options.blocking_pod_selectors = {"app=batch"};
  cluster.forbid("list", "pods");
  EXPECT_EQ(ask().reason(), "BlockingPodsUnknown");
}

TEST_F(NodeGatesTest, WhatWentWrongElsewhereHoldsUntilItIsWell) {
  pool.node_selector = "pool=web";
  Record failed;
  failed.state = State::degraded;
  failed.reboots = {{.reasons = {"kernel"}, .target = "1.1"}};
  Json other = scenario::a_node("n2");
  other["metadata"]["labels"] = {{"haulout.dev/state", "degraded"}, {"pool", "db"}};
  other["metadata"]["annotations"] = {{"haulout.dev/record", encode_record(failed)}};
  add(other);
  EXPECT_TRUE(ask().open()) << "another pool";
  pool = {"db", "pool=db"};
  EXPECT_EQ(ask().reason(), "UpdateFailedElsewhere") << "the own one by now";
  pool = {"web", "pool=web"};
  cluster.patch("nodes", "", "n2", {{"metadata", {{"labels", {{"pool", "web"}}}}}});
  EXPECT_EQ(ask().reason(), "UpdateFailedElsewhere");
  EXPECT_LT(woken_by([&] {
              cluster.patch("nodes", "", "n2", {{"metadata", {{"labels", {{"haulout.dev/state", "soaking"}}}}}});
            }),
            1s);
  EXPECT_TRUE(ask().open());
}

// Otherwise nodes that have failed hold each other back, and nothing ends a halt with more failures than the number.
TEST_F(NodeGatesTest, ANodeThatHasFailedItselfMayTryAgain) {
  Record failed;
  failed.state = State::degraded;
  failed.reboots = {{.reasons = {"kernel"}, .target = "1.1"}};
  Json other = scenario::a_node("n2");
  other["metadata"]["labels"] = {{"haulout.dev/state", "degraded"}};
  other["metadata"]["annotations"] = {{"haulout.dev/record", encode_record(failed)}};
  add(other);
  EXPECT_EQ(ask().reason(), "UpdateFailedElsewhere");
  question.record.failed_to = "1.0";
  EXPECT_EQ(ask().reason(), "UpdateFailedElsewhere") << "another version";
  question.record.failed_to = "1.1";
  for (const When when : {When::before_turn, When::with_turn, When::any_time}) EXPECT_TRUE(ask(when).open());
}

// Of a version that means something else on each node, --halt-after counts nothing.
TEST_F(NodeGatesTest, ANumberOfFailuresCountsOnlyForVersionsThatNodesShare) {
  options.halt_after = 2;
  Record failed;
  failed.state = State::degraded;
  failed.reboots = {{.reasons = {"kernel"}, .target = "1.1"}};
  Json other = scenario::a_node("n2");
  other["metadata"]["labels"] = {{"haulout.dev/state", "degraded"}};
  other["metadata"]["annotations"] = {{"haulout.dev/record", encode_record(failed)}};
  add(other);
  EXPECT_TRUE(ask().open());
  question.versions_are_shared = false;
  EXPECT_EQ(ask().reason(), "UpdateFailedElsewhere");
}

TEST_F(NodeGatesTest, AVersionThatFailedElsewhereHoldsWhatInstallsUpdates) {
  options.installs = true;
  Record failed;
  failed.state = State::idle;
  failed.failed_versions = {"1.1"};
  Json other = scenario::a_node("n2");
  other["metadata"]["labels"] = {{"haulout.dev/failed-version", "1.1"}};
  other["metadata"]["annotations"] = {{"haulout.dev/record", encode_record(failed)}};
  add(other);
  for (const When when : {When::before_turn, When::with_turn, When::any_time, When::under_way})
    EXPECT_EQ(ask(when).reason(), "VersionFailed");
  EXPECT_TRUE(ask(When::under_way).closed_with(Gate::Effect::gives_up));
  failed.failed_versions = {"1.2", "1.1"};
  const auto record = [&] {
    cluster.patch("nodes", "", "n2",
                  {{"metadata", {{"annotations", {{"haulout.dev/record", encode_record(failed)}}}}}});
  };
  EXPECT_LT(woken_by(record), 1s) << "also under way";
  EXPECT_EQ(ask().reason(), "VersionFailed");
  failed.failed_versions = {"1.2"};
  EXPECT_LT(woken_by(record), 1s);
  EXPECT_TRUE(ask().open());
  EXPECT_TRUE(ask(When::under_way).open());
  failed.failed_versions = {"1.1"};
  EXPECT_LT(woken_by(record), 1s) << "a drain for it is given up at once";
  EXPECT_TRUE(ask(When::under_way).closed_with(Gate::Effect::gives_up));
  cluster.forbid("list", "nodes");
  EXPECT_TRUE(ask(When::under_way).first_closed()) << "it was readable before";
}

TEST_F(NodeGatesTest, AnotherVersionThanThePinnedOneWaits) {
  options.installs = true;
  options.pin = "1.2";
  for (const When when : {When::before_turn, When::with_turn, When::any_time, When::under_way})
    EXPECT_EQ(ask(when).reason(), "VersionPinned");
  EXPECT_TRUE(ask(When::under_way).closed_with(Gate::Effect::gives_up));
  question.pending.target = "1.2";
  EXPECT_TRUE(ask().open());
  EXPECT_TRUE(ask(When::under_way).open());
}

// A node that installs no updates, or whose need names no version, does not ask the server which versions have failed
// on other nodes.
TEST_F(NodeGatesTest, WithoutAnInstallationNobodyAsksForFailedVersions) {
  for (const bool installs : {false, true}) {
    gates.reset();
    options.installs = installs;
    question.pending.target = installs ? "" : "1.1";
    for (const When when : {When::before_turn, When::under_way}) {
      const std::size_t before = cluster.server().audit().size();
      ask(when);
      for (std::size_t i = before; i < cluster.server().audit().size(); ++i)
        EXPECT_THAT(cluster.server().audit()[i].query, ::testing::Not(HasSubstr("failed-version")));
    }
  }
}

TEST_F(NodeGatesTest, WhatIsGivenUpAnywayDoesNotAskForFailedVersions) {
  options.installs = true;
  options.pin = "1.2";
  EXPECT_TRUE(ask(When::under_way).closed_with(Gate::Effect::gives_up));
  for (const auto& request : cluster.server().audit())
    EXPECT_THAT(request.query, ::testing::Not(HasSubstr("failed-version")));
}

// The pool is known by name only, without a label selector. So the record of the other node decides to which pool it
// belongs, even if the label with the pool is missing.
TEST_F(NodeGatesTest, WhatWentWrongInAnotherNamedPoolHoldsNobody) {
  Record failed;
  failed.state = State::degraded;
  failed.reboots = {{.reasons = {"kernel"}, .target = "1.1"}};
  failed.pool = "db";
  Json other = scenario::a_node("n2");
  other["metadata"]["labels"] = {{"haulout.dev/state", "degraded"}};
  other["metadata"]["annotations"] = {{"haulout.dev/record", encode_record(failed)}};
  add(other);
  EXPECT_TRUE(ask().open());
  pool = {"db"};
  EXPECT_EQ(ask().reason(), "UpdateFailedElsewhere");
}

TEST_F(NodeGatesTest, APersonsCordonClosesTheGateUntilTheDrainHasBegun) {
  question.node.unschedulable = true;
  question.node.unschedulable_manager = "kubectl-cordon";
  EXPECT_EQ(ask().reason(), "CordonedByPerson");
  EXPECT_EQ(ask().message(),
            "this node is cordoned with kubectl-cordon: the agent leaves it alone until it is uncordoned (kubectl "
            "uncordon n1)");
  EXPECT_EQ(ask(When::with_turn).reason(), "CordonedByPerson");
  const GateAnswer before = ask(When::under_way);
  EXPECT_TRUE(before.closed_with(Gate::Effect::gives_up)) << "no pod has left yet";
  question.record.cordoned = true;
  EXPECT_TRUE(ask(When::under_way).open()) << "our own drain goes on";
  question.record.cordoned = false;
  question.record.run = "n1.5";
  question.node.annotations = {{"haulout.dev/cordon", R"({"run":"n1.5","by":"agent","at":"2026-01-01T00:00:00Z"})"}};
  EXPECT_TRUE(ask(When::under_way).open()) << "and has just cordoned the node, whoever is booked for it";
}

TEST_F(NodeGatesTest, APersonsCordonMayHoldNothing) {
  options.cordoned_nodes = CordonedNodes::update;
  question.node.unschedulable = true;
  EXPECT_TRUE(ask().open());
  EXPECT_EQ(row(ask(), "cordon").verdict, Verdict::off);
}

// The node's pool label was changed. Pauses follow the new pool, as slots do.
TEST_F(NodeGatesTest, ANodeThatComesIntoAnotherPoolIsPausedWithThatOne) {
  pause({{"pause.web", because("audit")}});
  EXPECT_EQ(ask().reason(), "Paused");
  pool = {"db"};
  EXPECT_TRUE(ask().open());
  EXPECT_LT(
      woken_by([&] { cluster.patch("configmaps", "haulout", "haulout", {{"data", {{"pause.db", because("x")}}}}); }),
      1s);
  EXPECT_EQ(ask().reason(), "Paused");
}

// While a drain is under way, the gates must not use the view of the former pool's pauses for the new pool.
TEST_F(NodeGatesTest, APauseOfTheNewPoolIsSeenUnderWay) {
  pause({{"pause.db", because("audit")}});
  in_the_world([&]() -> boost::asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(gates->changed());
      question.when = When::under_way;
      GateAnswer answer = co_await gates->ask(question, clock.now() + 30s);
      EXPECT_TRUE(answer.open());
      co_await clock.sleep_until(clock.now() + 5s);
      pool = {"db"};
      answer = co_await gates->ask(question, clock.now() + 30s);
      EXPECT_EQ(answer.reason(), "Paused");
    });
  });
}

TEST_F(NodeGatesTest, WithoutTheRightToListNodesTheFleetIsNotJudged) {
  cluster.forbid("list", "nodes");
  EXPECT_EQ(row(ask(), "fleet").verdict, Verdict::off);
  cluster.permit("list", "nodes");
  EXPECT_EQ(row(ask(), "fleet").verdict, Verdict::open);
  cluster.forbid("list", "nodes");
  EXPECT_EQ(ask().reason(), "FleetUnknown") << "a right that was there once";
}

// P10: the server counts a list and the watch that follows it together. If it throttles one of them, the other must
// wait, too.
struct Throttled : NodeGatesTest {
  // Runs `body` with gates whose first request with `verb` on `resource` is throttled with Retry-After 20 s. No request
  // with any of `verbs` on the resource may arrive within these 20 s, and at least one must arrive later.
  void expect_left_alone(const std::string& verb, const std::string& resource, const std::set<std::string>& verbs,
                         const std::function<boost::asio::awaitable<void>()>& body) {
    options.blocking_pod_selectors = {"app=batch"};
    sim::FaultTransport wire(cluster.api(), clock, world_rng);
    wire.add({.verb = verb,
              .resource = resource,
              .count = 1,
              .fault = {.kind = sim::FaultKind::throttle, .retry_after = "20"}});
    k8s::Client throttled(wire, clock, {.validation = k8s::FieldValidation::strict});
    gates = std::make_unique<NodeGates>(throttled, rng, nullptr, options);
    begun = clock.now();
    in_the_world(body);
    bool asked = false;
    for (const sim::AuditEntry& entry : cluster.audit()) {
      if (entry.resource != resource || !verbs.contains(entry.verb)) continue;
      asked = true;
      EXPECT_GE(entry.time, begun + 20s) << entry.text();
    }
    EXPECT_TRUE(asked);
  }
  boost::asio::awaitable<void> expect_open(bool open) {
    EXPECT_EQ((co_await gates->ask(question, clock.now() + 30s)).open(), open);
  }
  boost::asio::awaitable<void> follow_until(Duration end) {
    co_await with_task_group([&](TaskGroup& group) {
      group.spawn(gates->changed());
      return clock.sleep_until(begun + end);
    });
  }
  // Asks the gates, follows their changes, and asks again before the Retry-After of the first answer has passed: the
  // gates are closed both times. After a minute they are open.
  void expect_left_alone(const std::string& verb, const std::string& resource) {
    expect_left_alone(verb, resource, {"get", "list", "watch"}, [&]() -> boost::asio::awaitable<void> {
      co_await expect_open(false);
      co_await follow_until(10s);
      co_await expect_open(false);
      co_await follow_until(60s);
      co_await expect_open(true);
    });
  }
  TimePoint begun{};
};

TEST_F(Throttled, PausesAreLeftAlone) {
  expect_left_alone("get", "configmaps");
}
TEST_F(Throttled, PodsAreLeftAlone) {
  expect_left_alone("list", "pods");
}
TEST_F(Throttled, NodesAreLeftAlone) {
  expect_left_alone("list", "nodes");
}
// If the server throttles the list with which changed() begins, the next changed() waits, too.
TEST_F(Throttled, TheNextWatchWaitsForWhatTheLastOneWasTold) {
  expect_left_alone("list", "configmaps", {"list", "watch"}, [&]() -> boost::asio::awaitable<void> {
    co_await expect_open(true);
    co_await follow_until(5s);
    co_await follow_until(60s);
  });
}

}  // namespace
}  // namespace haulout::agent
