// The cordon under faults: who owns it, whether it is still in force, and how much time cordoning and settling get.
#include "drain/cordon.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;

class Cordon : public Scenario {
 protected:
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  Cordon() { way = &faults; }
  void never_drained() {
    add_pods(1);
    add(a_budget("closed", {{"maxUnavailable", 0}}));
    options.timeout = 2min;
  }
  // A patch of the Node takes effect, but its answer is lost.
  void lose_an_answer(unsigned after_others = 0) {
    faults.add({.verb = "patch",
                .resource = "nodes",
                .skip = after_others,
                .count = 1,
                .fault = {.kind = sim::FaultKind::reset_after}});
  }
};

TEST_F(Cordon, P5_OurOwnAlsoWhenTheAnswerToItWasLost) {
  never_drained();
  lose_an_answer();
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_FALSE(report.cordon.before);
  EXPECT_FALSE(unschedulable()) << "what it set, it takes back";
}

TEST_F(Cordon, P5_OurOwnAlsoWhenItTookManyTries) {
  never_drained();
  faults.add({.verb = "patch",
              .resource = "nodes",
              .count = 1,
              .fault = {.kind = sim::FaultKind::throttle, .retry_after = "30"}});
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable()) << "the mark bears the time of the patch, not of the first try";
}

TEST_F(Cordon, P5_OneThatIsNeverAnsweredIsTakenBack) {
  never_drained();
  faults.add({.verb = "patch", .resource = "nodes", .count = 1, .fault = {.kind = sim::FaultKind::stall}});
  options.timeout = 20s;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable());
}

TEST_F(Cordon, P4_ADeadlineBeforeItIsNoFailure) {
  never_drained();
  faults.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::reset_before}});
  options.timeout = 5s;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
}

TEST_F(Cordon, P5_AnotherRunsCordonIsNotTakenBack) {
  never_drained();
  after(20s, [this] { cluster.uncordon("n1"); });
  after(40s, [this] {
    const drain::CordonMark other{"another run", "ann", clock.wall_now()};
    cluster.patch("nodes", "", "n1",
                  {{"metadata", {{"annotations", {{"haulout.dev/cordon", drain::encode_mark(other)}}}}},
                   {"spec", {{"unschedulable", true}}}});
  });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_TRUE(unschedulable());
}

TEST_F(Cordon, P5_TakingItBackSurvivesAFault) {
  never_drained();
  faults.add(
      {.verb = "patch", .resource = "nodes", .skip = 1, .count = 2, .fault = {.kind = sim::FaultKind::server_error}});
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable());
}

TEST_F(Cordon, P5_TakingItBackSurvivesCredentialsThatFailForAWhile) {
  never_drained();
  faults.add({.verb = "patch",
              .resource = "nodes",
              .skip = 1,
              .count = 2,
              .fault = {.kind = sim::FaultKind::server_error, .code = 401}});
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable());
}

// The patch that cordons took effect and its answer was lost. After that the server answers 401 for a while. The drain
// still removes its cordon in the end.
TEST_F(Cordon, P5_OneWhoseAnswerWasLostIsTakenBackAlsoAfterA401) {
  never_drained();
  options.timeout = 20s;
  lose_an_answer();
  faults.add({.verb = "get",
              .resource = "nodes",
              .skip = 2,
              .count = 6,
              .fault = {.kind = sim::FaultKind::server_error, .code = 401}});
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable());
}

TEST_F(Cordon, P4_OneWhoseAnswerWasLostIsNotDeniedWhereNobodyCanLook) {
  never_drained();
  options.timeout = 20s;
  lose_an_answer();
  faults.add({.verb = "get", .resource = "nodes", .skip = 2, .fault = {.kind = sim::FaultKind::refuse}});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_TRUE(unschedulable());
  EXPECT_FALSE(report.cordon.known);
  EXPECT_THAT(report.message, ::testing::HasSubstr("it is unknown whether it is cordoned now: "));
}

// The answer to the patch that cordons is lost, and at this moment the right to read the Node is revoked. The report
// says that it is unknown whether the node is cordoned.
TEST_F(Cordon, P4_OneWhoseAnswerWasLostIsNotDeniedWhereNobodyMayLook) {
  never_drained();
  lose_an_answer();
  faults.add(
      {.verb = "get", .resource = "nodes", .skip = 2, .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(unschedulable());
  EXPECT_FALSE(report.cordon.known);
  EXPECT_THAT(report.message, ::testing::HasSubstr("it is unknown whether it is cordoned now: "));
}

TEST_F(Cordon, P5_OneWhoseAnswerWasLostIsTakenBackAlsoAfterA403) {
  never_drained();
  lose_an_answer();
  faults.add({.verb = "get",
              .resource = "nodes",
              .skip = 2,
              .count = 2,
              .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_FALSE(unschedulable());
  EXPECT_TRUE(report.cordon.known);
}

TEST_F(Cordon, P4_AnUncordonWithoutAnAnswerIsReportedAsUnknown) {
  never_drained();
  lose_an_answer(1);
  after(2min, [this] {
    faults.add(
        {.verb = "get", .resource = "nodes", .skip = 1, .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable());
  EXPECT_FALSE(report.cordon.known);
  EXPECT_THAT(report.message, ::testing::HasSubstr("it is unknown whether the node is still cordoned"));
}

// The Node is deleted before the drain removes its cordon. The report does not say that a Node is cordoned which does
// not exist any more.
TEST_F(Cordon, ANodeThatWasDeletedMeanwhileIsNotReportedAsCordoned) {
  never_drained();
  after(115s, [this] {
    faults.add({.verb = "get", .resource = "nodes", .fault = {.kind = sim::FaultKind::server_error, .code = 404}});
    faults.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::server_error, .code = 404}});
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_FALSE(report.cordon.after);
  EXPECT_TRUE(report.cordon.known);
  EXPECT_THAT(report.message,
              AllOf(::testing::HasSubstr("with 1 pod left: "), ::testing::HasSubstr("; the Node was deleted"),
                    ::testing::Not(::testing::HasSubstr("still cordoned"))));
}

TEST_F(Cordon, P8_OneThatTheServerFailsToWriteIsSaid) {
  add_pods(1);
  options.timeout = 2min;
  faults.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::server_error, .code = 500}});
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  const auto said = std::find_if(told.entries.begin(), told.entries.end(),
                                 [](const auto& entry) { return entry.type == EventType::disconnected; });
  ASSERT_NE(said, told.entries.end());
  EXPECT_THAT(said->message, ::testing::HasSubstr("node n1 could not be cordoned: "));
  EXPECT_LE(said->at - told.entries.front().at, 30s);
  EXPECT_EQ(told.count(EventType::disconnected), 1u) << "the same is not said twice";
  EXPECT_EQ(told.count(EventType::reconnected), 1u);
}

TEST_F(Cordon, ATroubleThatIsOverInAMomentIsNotSaid) {
  add_pods(1);
  faults.add(
      {.verb = "patch", .resource = "nodes", .count = 2, .fault = {.kind = sim::FaultKind::server_error, .code = 500}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(told.count(EventType::disconnected), 0u);
}

TEST_F(Cordon, P3_TheSettleTimeBeginsAnewWithANewCordon) {
  add_pods(1, {.grace = 30});
  after(10s, [this] { cluster.uncordon("n1"); });
  after(60s, [this] { cluster.cordon("n1"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(took(), 65s);
}

TEST_F(Cordon, P3_NotDrainedOnAStaleViewOfTheNode) {
  add_pods(1, {.grace = 20});
  options.timeout = 1min;
  faults.add({.verb = "watch", .resource = "nodes", .fault = {.kind = sim::FaultKind::stall, .after_pieces = 1}});
  after(10s, [this] { cluster.uncordon("n1"); });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
}

TEST_F(Cordon, TheTimeoutIsPerNodeAndNotSpentWhileOthersArePreflighted) {
  add_pods(1);
  options.timeout = 1min;
  bool cordoned = false;
  auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
    drain::Drain drain(client, rng, told, options, "n1");
    EXPECT_TRUE(co_await drain.preflight());
    co_await clock.sleep_until(clock.now() + 2min);
    cordoned = co_await drain.cordon();
  };
  run(with_task_group(body));
  EXPECT_TRUE(cordoned);
}

// With several nodes, the drain of this node may start long after its preflight. So it makes the plan of its evictions
// again.
TEST_F(Cordon, AnOldPlanIsMadeAgainBeforeTheFirstEviction) {
  add_pods(3, {.grace = 1});
  options.timeout = 1min;
  std::optional<drain::Report> report;
  auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
    drain::Drain drain(client, rng, told, options, "n1");
    EXPECT_TRUE(co_await drain.preflight());
    EXPECT_TRUE(co_await drain.cordon());
    cluster.remove("pods", "shop", "web-0");
    cluster.patch("pods", "shop", "web-1",
                  {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", "true"}}}}}});
    co_await clock.sleep_until(clock.now() + 10min);
    static_cast<void>(co_await drain.evict());
    report = drain.report();
  };
  run(with_task_group(body));
  EXPECT_THAT(*report, Ended(Outcome::blocked));
  EXPECT_THAT(pods_on("n1"), ::testing::ElementsAre("web-1"));
  for (const auto& entry : evictions()) EXPECT_EQ(entry.name, "web-2");
}

}  // namespace
}  // namespace haulout::scenario
