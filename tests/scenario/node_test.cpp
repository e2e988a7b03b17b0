// The node: cordons by the drain and by other writers, terminating namespaces, permissions, and cancelling.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(Scenario, S38_NamespaceTerminatingPodNotTouchedYet) {
  add_pods(2);
  cluster.timing().namespace_lag = 10s;
  after(0s, [this] { cluster.terminate_namespace("shop"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::gone);
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
}

TEST_F(Scenario, S39_NamespaceTerminatingPodTerminating) {
  add_pods(2, {.grace = 40});
  cluster.timing().namespace_lag = 1ms;
  cluster.terminate_namespace("shop");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evictions(), IsEmpty()) << "they were leaving already";
}

TEST_F(Scenario, S40_NodeDeletedInTheMiddle) {
  add_pods(3, {.grace = 60});
  after(5s, [this] { cluster.remove("nodes", "", "n1"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::node_gone));
  EXPECT_TRUE(told.raised("NodeGone"));
  EXPECT_THAT(requests("patch", "nodes"), SizeIs(1));
}

TEST_F(Scenario, S41_NodeRecreatedUnderTheSameName) {
  add_pods(3, {.grace = 60});
  after(5s, [this] {
    cluster.remove("nodes", "", "n1");
    Json node = a_node("n1");
    node["metadata"]["uid"] = "another-uid";
    cluster.create("nodes", node);
  });
  EXPECT_THAT(drain(), Ended(Outcome::node_gone));
}

TEST_F(Scenario, S43_AHumanHadCordonedBefore) {
  cluster.cordon("n1");
  add_pods(2);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(report.cordon.before);
  EXPECT_EQ(report.cordon.owner, "other");
  EXPECT_TRUE(unschedulable());
  EXPECT_THAT(requests("patch", "nodes"), IsEmpty());
}

TEST_F(Scenario, S43_AHumansCordonSurvivesAFailedDrain) {
  cluster.cordon("n1");
  add_pods(2);
  add(a_budget("closed", {{"maxUnavailable", 0}}));
  options.timeout = 30s;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_TRUE(unschedulable());
}

TEST_F(Scenario, P5_AFailedDrainTakesBackItsOwnCordon) {
  add_pods(1);
  add(a_budget("closed", {{"maxUnavailable", 0}}));
  options.timeout = 30s;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_FALSE(unschedulable());
  EXPECT_FALSE(report.cordon.after);
  EXPECT_TRUE(sim::annotation(cluster.get("nodes", "", "n1"), "haulout.dev/cordon").empty());
}

TEST_F(Scenario, P5_AFailedDrainKeepsItsCordonWithoutTheOption) {
  add_pods(1);
  add(a_budget("closed", {{"maxUnavailable", 0}}));
  options.timeout = 30s;
  options.restore_cordon_on_failure = false;
  const auto report = drain();
  EXPECT_TRUE(unschedulable());
  EXPECT_EQ(report.cordon.owner, "haulout");
}

TEST_F(Scenario, S44_CordonMeetsOtherWriters) {
  add_pods(1);
  int conflicts = 0;
  cluster.server().intercept([&](const sim::Call&, const sim::AuditEntry& entry) {
    if (entry.verb == "patch" && entry.resource == "nodes" && ++conflicts <= 3)
      cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"beat", std::to_string(conflicts)}}}}}});
    return std::optional<http::Response>();
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(requests("patch", "nodes"), SizeIs(4));
  EXPECT_TRUE(unschedulable());
}

TEST_F(Scenario, TheCordonIsAcknowledgedBeforeTheFirstEviction) {
  add_pods(3);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(requests("patch", "nodes").at(0).answered, evictions().at(0).time);
}

TEST_F(Scenario, S70_StoppedWithinASecondAndSaysWhatIsLeft) {
  options.max_concurrent = 2;
  add_pods(6, {.grace = 30});
  std::optional<drain::Report> report;
  TimePoint asked{}, stopped{};
  auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
    drain::Drain drain(client, rng, told, options, "n1");
    auto work = [](drain::Drain& target) -> Task<int> {
      static_cast<void>(co_await target.run());
      co_return 1;
    };
    asked = clock.now() + 45s;
    const auto ended = co_await with_deadline(clock, asked, work(drain));
    stopped = clock.now();
    EXPECT_FALSE(ended);
    report = drain.report();
  };
  run(with_task_group(body));
  EXPECT_LT(stopped - asked, 1s);
  EXPECT_THAT(*report, Ended(Outcome::cancelled));
  EXPECT_TRUE(unschedulable()) << "a stop is no failure: the cordon stays for the successor";
  std::size_t evicted = 0, left = 0;
  for (const auto& entry : report->pods) (entry.outcome == PodOutcome::evicted ? evicted : left) += 1;
  EXPECT_EQ(evicted, 2u);
  EXPECT_EQ(left, 4u);
}

TEST_F(Scenario, S37_RightsRemovedInTheMiddle) {
  options.max_concurrent = 1;
  options.timeout = 10min;
  add_pods(5, {.grace = 5});
  after(12s, [this] { cluster.forbid("create", "pods/eviction"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_TRUE(told.raised("RightMissing"));
  EXPECT_FALSE(unschedulable());
  ASSERT_THAT(report.diagnoses, Not(IsEmpty()));
  for (const auto& diagnosis : report.diagnoses)
    EXPECT_THAT(diagnosis.message, HasSubstr("grant verb create on resource pods/eviction (API group \"\")"));
  EXPECT_EQ(accepted_evictions(), 3u);
  EXPECT_THAT(evictions(), SizeIs(::testing::Le(3u + 2u * 15u))) << "from the second refusal on once a minute";
}

TEST_F(Scenario, MissingRightsAreFoundBeforeAnythingIsTouched) {
  options.fail_fast = true;
  cluster.forbid("create", "pods/eviction");
  add_pods(2);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(report.connection_failed);
  EXPECT_THAT(report.message, HasSubstr("pods/eviction"));
  EXPECT_FALSE(unschedulable());
}

TEST_F(Scenario, RightsAreReviewedWhereTheyMatter) {
  options.fail_fast = true;
  add_pods(2);
  // A RoleBinding in the pods' namespace. The review denies the right for all namespaces and allows it for that one.
  cluster.server().intercept([](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (!call.path.ends_with("/selfsubjectaccessreviews")) return std::nullopt;
    const auto asked = Json::parse(call.request.body)["spec"]["resourceAttributes"];
    const bool allowed = asked["resource"] == "nodes" || asked.value("namespace", "") == "shop";
    http::Response answer;
    answer.status = 201;
    answer.headers.add("Content-Type", "application/json");
    answer.body = Json({{"kind", "SelfSubjectAccessReview"},
                        {"apiVersion", "authorization.k8s.io/v1"},
                        {"metadata", Json::object()},
                        {"status", {{"allowed", allowed}}}})
                      .dump();
    return answer;
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(Scenario, AServerThatAnswers503AtFirstIsWaitedFor) {
  options.fail_fast = true;
  add_pods(1);
  after(0s, [this] { cluster.switches().shutting_down_until = clock.now() + 30s; });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(Scenario, ARecreatedNodeIsNotCordoned) {
  add_pods(1);
  cluster.server().intercept([this, done = false](const sim::Call& call, const sim::AuditEntry& entry) mutable {
    if (call.path.ends_with("/selfsubjectaccessreviews") && !std::exchange(done, true)) {
      cluster.remove("nodes", "", "n1");
      Json node = a_node("n1");
      node["metadata"]["uid"] = "another-uid";
      cluster.create("nodes", node);
    }
    static_cast<void>(entry);
    return std::optional<http::Response>();
  });
  EXPECT_THAT(drain(), Ended(Outcome::node_gone));
  EXPECT_FALSE(unschedulable());
}

TEST_F(Scenario, S63_UnknownNodeIsNotAnEmptyNode) {
  cluster.remove("nodes", "", "n1");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_FALSE(report.connection_failed);
  EXPECT_THAT(requests("list", "pods"), IsEmpty());
}

TEST_F(Scenario, WithoutWatchesItPolls) {
  cluster.forbid("watch", "pods");
  cluster.forbid("watch", "poddisruptionbudgets");
  cluster.forbid("watch", "nodes");
  cluster.forbid("list", "nodes");
  add_pods(4, {.grace = 20});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  for (const char* resource : {"pods", "poddisruptionbudgets", "nodes"}) {
    const auto watches = requests("watch", resource);
    EXPECT_THAT(watches, Not(IsEmpty())) << resource;
    for (const sim::AuditEntry& watch : watches) EXPECT_EQ(watch.status, 403) << resource;
  }
  // The pods are deleted within 20 s, and the drain lists them about every 5 s. Further lists are for the preflight and
  // for the final proof.
  EXPECT_THAT(requests("list", "pods"), SizeIs(::testing::AllOf(::testing::Ge(5u), ::testing::Le(9u))));
}

TEST_F(Scenario, P4_ADeadlineIsNoSuccess) {
  add_pods(1, {.grace = 600});
  options.timeout = 30s;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::terminating);
}

TEST_F(Scenario, P4_ALostConnectionIsNoSuccess) {
  add_pods(1, {.grace = 5});
  options.timeout = 2min;
  after(2s, [this] {
    cluster.refuse_connections(1h);
    cluster.drop_connections();
  });
  options.restore_cordon_on_failure = false;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
}

TEST_F(Scenario, P1_NoPodIsDeleted) {
  add_pods(10);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evictions(), ::testing::SizeIs(10)) << "the log has what the drain asked for";
  for (const auto& entry : cluster.audit()) EXPECT_NE(entry.verb, "delete");
}

TEST_F(Scenario, P2_EveryEvictionCarriesTheUid) {
  add_pods(10);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  for (const auto& entry : evictions()) EXPECT_FALSE(entry.uid.empty());
}

}  // namespace
}  // namespace haulout::scenario
