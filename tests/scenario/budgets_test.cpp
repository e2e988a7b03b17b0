// Budgets, throttling, and limits on how often an eviction is retried.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Json web = {{"matchLabels", {{"app", "web"}}}};

class Budgets : public Scenario {
 protected:
  const PodSpec labelled{.labels = {{"app", "web"}}};
  // Runs a drain with a budget that is exhausted for four minutes. Each later eviction must be sent at the same virtual
  // time at which the watch event arrives that allows it.
  void drained_as_it_opens() {
    add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 1}},
                   {{"sim.haulout.dev/prefers-node", "n1"}}));
    add(a_workload("Deployment", "canary", 1, {},
                   {{"sim.haulout.dev/prefers-node", "n2"}, {"sim.haulout.dev/starts-after", "240s"}}));
    add(a_budget("web", {{"minAvailable", 2}}));
    std::vector<WallTime> opened;
    cluster.on_change([&](const sim::Change& change) {
      if (change.key.resource != "poddisruptionbudgets" || !change.object || !change.before) return;
      if (sim::number(*change.object, "/status/disruptionsAllowed") >
          sim::number(*change.before, "/status/disruptionsAllowed"))
        opened.push_back(clock.wall_now());
    });
    no_latency();
    EXPECT_THAT(drain(), Ended(Outcome::drained));
    ASSERT_GE(opened.size(), 1u);
    for (const auto& entry : told.entries) {
      if (entry.type != EventType::eviction_sent || entry.at < opened.front()) continue;
      const auto last = std::max_element(opened.begin(), opened.end(), [&](WallTime a, WallTime b) {
        return (a <= entry.at ? a : WallTime{}) < (b <= entry.at ? b : WallTime{});
      });
      EXPECT_EQ(entry.at - *last, 0ms) << entry.pod;
    }
  }
  // After a 429, every later eviction must come at least `least` after the answer. Requests sent before the answer are
  // exempt.
  void expect_patience(Duration least) {
    const auto sent = evictions();
    for (const auto& refused : sent)
      for (const auto& later : sent)
        if (refused.status == 429 && later.time > refused.answered + 10ms)
          EXPECT_GE(later.time - refused.answered, least) << later.text();
  }
  void replace_budget(const Json& spec) { cluster.patch("poddisruptionbudgets", "shop", "web", {{"spec", spec}}); }
};

TEST_F(Budgets, S20_PdbZeroIsSaidWithin30SecondsAndOthersLeave) {
  add_pods(3, labelled);
  add_pods(5, {}, "free");
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  options.timeout = 5min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  ASSERT_TRUE(told.raised("BudgetNeverAllows"));
  EXPECT_LE(
      *told.time_of(EventType::diagnosis_raised, "BudgetNeverAllows") - *told.time_of(EventType::parked, "shop/web-0"),
      30s);
  EXPECT_THAT(pods_on("n1"), SizeIs(3));
  EXPECT_GE(took(), 5min);
  EXPECT_LE(took(), 5min + 1s) << "the cordon is taken back, that is all";
  ASSERT_THAT(report.diagnoses, SizeIs(1));
  EXPECT_THAT(report.diagnoses[0].subject, HasSubstr("shop/web"));
}

TEST_F(Budgets, S21_ABudgetThatOpensLateWakesAtOnce) {
  drained_as_it_opens();
}

// A server that has just started may refuse a list of the budgets with 403 that it allows a moment later. So the drain
// lists again after one refusal, and even after several.
TEST_F(Budgets, S21_AlsoWhereTheFirstLooksAtBudgetsWereRefused) {
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  way = &faults;
  faults.add({.verb = "list",
              .resource = "poddisruptionbudgets",
              .count = 3,
              .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  drained_as_it_opens();
  EXPECT_THAT(faults.struck(), SizeIs(3));
}

TEST_F(Budgets, S22_BudgetCreatedInTheMiddle) {
  options.max_concurrent = 1;
  add_pods(6, labelled);
  after(25s, [this] {
    cluster.create("poddisruptionbudgets", a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  });
  after(10min, [this] { cluster.remove("poddisruptionbudgets", "shop", "web"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 10min);
  EXPECT_TRUE(told.raised("BudgetNeverAllows"));
}

// Pods that come during the drain. At its beginning their budgets select no pod of the node, so the drain has not kept
// them.
class LatePods : public Budgets {
 protected:
  LatePods() {
    add_pods(1);
    for (const char* name : {"late", "later"}) add(a_budget(name, {{"maxUnavailable", 0}, {"selector", of(name)}}));
    options.timeout = 2min;
  }
  static Json of(const std::string& app) { return {{"matchLabels", {{"app", app}}}}; }
  void come(Duration when, const std::string& name, const std::string& app) {
    after(when, [this, name, app] { cluster.create("pods", a_pod(name, {.labels = {{"app", app}}})); });
  }
  // Drains the node. The drain must know the budgets of these pods at the end.
  drain::Report held(const std::vector<std::string>& names) {
    auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::blocked));
    for (const std::string& name : names)
      EXPECT_THAT(pod(report, name).message, HasSubstr("PodDisruptionBudget shop/late")) << name;
    return report;
  }
  std::size_t lists() const { return requests("list", "poddisruptionbudgets").size(); }
};

TEST_F(LatePods, AreHeldByBudgetsThatWereThereBefore) {
  come(2s, "a", "late");
  held({"a"});
  EXPECT_EQ(lists(), 2u) << "one for the plan, and one for the late pod";
}

TEST_F(LatePods, WithLabelsOfAPodBeforeNeedNoFurtherList) {
  add(a_pod("first", {.labels = {{"app", "late"}}}));
  come(2s, "a", "late");
  held({"first", "a"});
  EXPECT_EQ(lists(), 1u);
}

TEST_F(LatePods, ThatComeOneAfterTheOtherShareALateList) {
  come(2s, "a", "late");
  come(3s, "b", "free");
  come(4s, "c", "later");
  held({"a", "c"});
  EXPECT_EQ(lists(), 3u) << "at most one each five seconds";
}

TEST_F(LatePods, AreLookedUpAgainIfTheListFails) {
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  way = &faults;
  faults.add({.verb = "list",
              .resource = "poddisruptionbudgets",
              .count = 2,
              .from = clock.now() + 1s,
              .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  come(2s, "a", "late");
  held({"a"});
  EXPECT_THAT(faults.struck(), SizeIs(2));
}

TEST_F(LatePods, APodWhoseLabelsChangeIsHeldByItsNewBudget) {
  add(a_budget("old", {{"maxUnavailable", 0}, {"selector", of("old")}}));
  add(a_pod("a", {.labels = {{"app", "old"}}}));
  after(2s, [this] { cluster.patch("pods", "shop", "a", {{"metadata", {{"labels", {{"app", "late"}}}}}}); });
  held({"a"});
}

TEST_F(Budgets, S23_BudgetRemovedInTheMiddle) {
  add_pods(2, labelled);
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  after(47s, [this] { cluster.remove("poddisruptionbudgets", "shop", "web"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 47s + 10s + 1s) << "grace is 10 s, and nothing was slept away";
}

// The drain creates no budget for pods without one and does not change or replace an existing one.
TEST_F(Budgets, S72_NoBudgetIsMadeChangedOrRemoved) {
  add_pods(3, {}, "free");
  add(a_workload("Deployment", "web", 4, {{"terminationGracePeriodSeconds", 2}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_budget("web", {{"maxUnavailable", 1}, {"selector", web}}));
  const Json before = cluster.get("poddisruptionbudgets", "shop", "web")["spec"];
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  std::size_t looks = 0;
  for (const auto& entry : cluster.audit()) {
    if (entry.resource != "poddisruptionbudgets") continue;
    EXPECT_THAT(entry.verb, ::testing::AnyOf("get", "list", "watch"));
    ++looks;
  }
  EXPECT_GT(looks, 0u);
  EXPECT_THAT(cluster.all("poddisruptionbudgets"), SizeIs(1));
  EXPECT_EQ(cluster.get("poddisruptionbudgets", "shop", "web")["spec"], before);
}

TEST_F(Budgets, S24_BudgetEditedByItsOwner) {
  add(a_workload("Deployment", "web", 4, {{"terminationGracePeriodSeconds", 2}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  after(70s, [this] { replace_budget({{"maxUnavailable", 2}}); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("BudgetNeverAllows"));
  EXPECT_TRUE(told.withdrawn("BudgetNeverAllows"));
  EXPECT_THAT(report.diagnoses, IsEmpty());
}

TEST_F(Budgets, S25_OverlappingBudgetsAreNamedAndAskedSlowly) {
  add_pods(1, labelled);
  add(a_budget("web", {{"maxUnavailable", 1}, {"selector", web}}));
  add(a_budget("all", {{"maxUnavailable", 1}}));
  after(5min, [this] { cluster.remove("poddisruptionbudgets", "shop", "all"); });
  // The new spec has minAvailable, because an integer maxUnavailable over pods without a scalable controller is never
  // satisfied.
  after(5min, [this] { replace_budget({{"maxUnavailable", nullptr}, {"minAvailable", 0}}); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  ASSERT_TRUE(told.raised("OverlappingBudgets"));
  EXPECT_TRUE(told.withdrawn("OverlappingBudgets"));
  EXPECT_LE(
      *told.time_of(EventType::diagnosis_raised, "OverlappingBudgets") - *told.time_of(EventType::parked, "shop/web-0"),
      30s);
  for (const auto& entry : told.entries)
    if (entry.diagnosis == "OverlappingBudgets")
      EXPECT_THAT(entry.message, ::testing::AllOf(HasSubstr("shop/all"), HasSubstr("shop/web")));
  EXPECT_LE(evictions().size(), 18u) << "at least 20 s between two tries";
}

TEST_F(Budgets, S29_TenPodsBehindABudgetOfOne) {
  add(a_workload("Deployment", "web", 10, {{"terminationGracePeriodSeconds", 2}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_budget("web", {{"maxUnavailable", 1}, {"selector", web}}));
  std::size_t in_flight = 0, most_in_flight = 0;
  cluster.server().intercept([&](const sim::Call&, const sim::AuditEntry& entry) {
    if (entry.subresource == "eviction") most_in_flight = std::max(most_in_flight, ++in_flight);
    return std::optional<http::Response>();
  });
  cluster.server().on_answer([&](const sim::AuditEntry& entry) {
    if (entry.subresource == "eviction") --in_flight;
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(most_in_flight, 1u);
  EXPECT_EQ(accepted_evictions(), 10u);
  EXPECT_LE(evictions().size(), 20u);
  for (const auto& entry : evictions()) EXPECT_NE(entry.status, 409);
}

TEST_F(Budgets, S31_FlowControlThrottlesTheClientAndNoBudgetIsBlamed) {
  options.max_concurrent = 2;
  add_pods(20, {.grace = 1, .labels = {{"app", "web"}}});
  add(a_budget("web", {{"minAvailable", 0}, {"selector", web}}));
  std::set<std::string> counted;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "poddisruptionbudgets" || !change.object) return;
    const Json disrupted = sim::at(*change.object, "/status/disruptedPods");
    const std::size_t before = counted.size();
    for (const auto& [pod, when] : disrupted.items()) counted.insert(pod);
    const bool throttled =
        clock.now() > cluster.switches().throttled_until - 19s && clock.now() < cluster.switches().throttled_until;
    if (throttled) EXPECT_EQ(counted.size(), before);
  });
  after(2s, [this] { cluster.throttle(20s, 8); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(told.count(EventType::throttled), 1u);
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
  EXPECT_EQ(accepted_evictions(), 20u);
  EXPECT_EQ(counted.size(), 20u);
  EXPECT_EQ(told.count(EventType::parked), 0u);
  expect_patience(8s);
  std::size_t refused = 0;
  for (const auto& entry : cluster.audit()) refused += entry.status == 429;
  EXPECT_LE(refused, 30u) << "20 s with Retry-After 8 leaves room for a few tries, not for a storm";
}

// The server shuts down. After 12 s, another server behind the same address takes over.
TEST_F(Budgets, S32_ServerThatShutsDown) {
  options.max_concurrent = 2;
  add_pods(10, {.grace = 2});
  after(5s, [this] {
    cluster.switches().says_retry_after = true;
    cluster.switches().shutting_down_until = clock.now() + 12s;
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 10u);
  EXPECT_GE(told.count(EventType::throttled), 1u);
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
  expect_patience(5s);
}

TEST_F(Budgets, S32_ServerThatShutsDownAndIsStartedAgain) {
  add_pods(10);
  after(1ms, [this] {
    cluster.switches().shutting_down_until = clock.now() + 4s;
    cluster.after(4s, [this] { cluster.restart(10s); });
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 10u);
}

TEST_F(Budgets, P9_FiveStuckPodsDelayNoOther) {
  add_pods(5, labelled);
  add_pods(50, {.grace = 10}, "free");
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(pods_on("n1"), SizeIs(5));
  WallTime last{};
  for (const auto& entry : report.pods)
    if (entry.vanished_at) last = std::max(last, *entry.vanished_at);
  EXPECT_LE(last - report.started_at, 10 * 10s + 5s) << "fifty pods of ten seconds, five at a time";
}

TEST_F(Budgets, S69_FiveStuckPods) {
  add_pods(5, labelled);
  add_pods(50, {.grace = 3}, "free");
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  options.timeout = 3min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(pods_on("n1"), SizeIs(5));
}

TEST_F(Budgets, P8_AViewOfBudgetsThatDiesInTheMiddleIsNotBelievedForEver) {
  add_pods(1, labelled);
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", web}}));
  after(5s, [this] {
    cluster.forbid("list", "poddisruptionbudgets");
    cluster.forbid("watch", "poddisruptionbudgets");
    cluster.drop_connections();
  });
  after(60s, [this] { cluster.remove("poddisruptionbudgets", "shop", "web"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(took(), 5min);
}

TEST_F(Budgets, WithoutTheRightToSeeBudgetsItStillGetsThere) {
  cluster.forbid("list", "poddisruptionbudgets");
  cluster.forbid("watch", "poddisruptionbudgets");
  add(a_workload("Deployment", "web", 4, {{"terminationGracePeriodSeconds", 2}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_budget("web", {{"maxUnavailable", 1}, {"selector", web}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  std::vector<std::string> said;
  for (const auto& entry : told.entries)
    if (entry.type == EventType::parked) said.push_back(entry.message);
  EXPECT_THAT(said, Not(IsEmpty()));
  EXPECT_THAT(
      said, Each(AllOf(HasSubstr("a PodDisruptionBudget of namespace shop"), HasSubstr("The disruption budget web "))));
}

}  // namespace
}  // namespace haulout::scenario
