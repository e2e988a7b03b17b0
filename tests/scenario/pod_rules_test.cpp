// Rules for some pods (--pod-rule) and the label of Cluster API, on the simulated cluster.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
namespace {
using namespace std::chrono_literals;
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::UnorderedElementsAre;

class PodRules : public Scenario {
 protected:
  void add_job(const std::string& name, PodSpec spec = {}) {
    spec.owner_kind = "Job";
    spec.owner_api = "batch/v1";
    add(a_pod(name, spec));
  }
  void follow(const std::string& rule) { options.policy.rules.push_back(drain::parse_pod_rule(rule).value()); }
  void finish(const std::string& name) {
    cluster.patch("pods", "shop", name,
                  {{"status", {{"phase", "Succeeded"}, {"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}});
  }
  std::vector<std::string> evicted() const {
    std::vector<std::string> names;
    for (const auto& entry : evictions()) names.push_back(entry.name);
    return names;
  }
};

TEST_F(PodRules, ADrainWaitsUntilTheWorkHasEnded) {
  follow("kind:Job=wait-completed");
  add_job("train");
  add_pods(3);
  after(40min, [this] { finish("train"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evicted(), UnorderedElementsAre("web-0", "web-1", "web-2"))
      << "the job is not evicted, and holds up no other pod";
  EXPECT_EQ(pod(report, "train").outcome, PodOutcome::skipped);
  EXPECT_EQ(pod(report, "train").reason, "Finished");
  EXPECT_THAT(took(), AllOf(Ge(40min), Lt(41min)));
  EXPECT_EQ(told.count(EventType::parked, "shop/train"), 1u);
  EXPECT_TRUE(told.raised("WaitingForCompletion"));
  EXPECT_TRUE(unschedulable()) << "no new work comes meanwhile";
}

TEST_F(PodRules, WhenTheLimitHasPassedThePodIsEvicted) {
  follow("kind:Job=wait-completed=10m");
  add_job("train");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("train"));
  EXPECT_THAT(took(), AllOf(Ge(10min), Lt(11min)));
}

// The second drain has the same run, as an agent that was restarted.
TEST_F(PodRules, ARunThatGoesOnWaitsForTheRestOfTheLimit) {
  follow("kind:Job=wait-completed=10m");
  add_job("train");
  options.timeout = 7min;
  options.restore_cordon_on_failure = false;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(evicted(), IsEmpty());
  options.timeout.reset();
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("train"));
  EXPECT_THAT(took(), AllOf(Ge(2min), Lt(4min)));
}

// The cordon of another run is still there, and does not count.
TEST_F(PodRules, ANewRunWaitsForTheWholeLimit) {
  follow("kind:Job=wait-completed=10m");
  add_job("train");
  options.timeout = 7min;
  options.restore_cordon_on_failure = false;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  options.timeout.reset();
  options.run_id = "tomorrow";
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(took(), AllOf(Ge(10min), Lt(11min)));
}

TEST_F(PodRules, TheLabelOfClusterApiIsFollowedIfTheOptionSaysSo) {
  add(a_pod("stays", {.labels = {{"cluster.x-k8s.io/drain", "skip"}}}));
  add(a_pod("works", {.labels = {{"cluster.x-k8s.io/drain", "wait-completed"}}}));
  after(5min, [this] { finish("works"); });
  options.policy.cluster_api_labels = drain::ClusterApiLabels::all;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evicted(), IsEmpty());
  EXPECT_EQ(pod(report, "stays").reason, "LeftByRule");
  EXPECT_THAT(pods_on("n1"), UnorderedElementsAre("stays", "works"));
}

TEST_F(PodRules, WithoutTheOptionTheLabelOfClusterApiHasNoEffect) {
  add(a_pod("stays", {.labels = {{"cluster.x-k8s.io/drain", "skip"}}}));
  options.policy.cluster_api_labels = drain::ClusterApiLabels::off;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("stays"));
}

TEST_F(PodRules, APodThatComesLastWaitsUntilTheOthersAreDeleted) {
  follow("app=log=last");
  add(a_pod("log", {.labels = {{"app", "log"}}, .spec = {{"priority", -100}}}));
  add_pods(2, {.grace = 60, .annotations = {{"sim.haulout.dev/terminates-after", "60s"}}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), UnorderedElementsAre("web-0", "web-1", "log"));
  EXPECT_EQ(evictions().back().name, "log");
  EXPECT_GE(evictions().back().time - evictions().front().time, 60s);
}

TEST_F(PodRules, ALabelThatIsTakenAwayEndsTheWait) {
  add(a_pod("works", {.labels = {{"cluster.x-k8s.io/drain", "wait-completed"}}}));
  options.policy.cluster_api_labels = drain::ClusterApiLabels::all;
  after(5min, [this] {
    cluster.patch("pods", "shop", "works", {{"metadata", {{"labels", {{"cluster.x-k8s.io/drain", nullptr}}}}}});
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("works"));
  EXPECT_THAT(took(), AllOf(Ge(5min), Lt(6min)));
}

// A pod that the drain only waits for needs no room on another node. A pod that is evicted in the end does.
TEST_F(PodRules, AWaitWithoutALimitNeedsNoRoomElsewhere) {
  add(a_node("n2"));
  add_job("train", {.spec = {{"containers", {{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1000"}}}}}}}}}});
  options.fit = drain::FitPolicy::block;
  follow("kind:Job=wait-completed=10m");
  EXPECT_THAT(drain(), Ended(Outcome::refused));
  options.policy.rules.clear();
  follow("kind:Job=wait-completed");
  after(5min, [this] { finish("train"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

// The pod that comes last is not what an administrator has to look at.
TEST_F(PodRules, TheDeadlineNamesThePodThatHoldsTheOthersUp) {
  follow("app=log=last");
  add(a_pod("a-log", {.labels = {{"app", "log"}}}));
  add(a_pod("web", {.labels = {{"app", "web"}}}));
  add(a_budget("web", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  options.timeout = 1min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, ::testing::HasSubstr("2 pods left: shop/web (BlockedByBudget)"));
}

TEST_F(PodRules, ADryRunSaysForWhichPodsTheDrainWouldWait) {
  follow("kind:Job=wait-completed");
  add_job("train");
  add_pods(1);
  options.dry_run = drain::DryRunMode::server;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(pod(report, "train").reason, "WaitingForCompletion");
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::planned);
}

}  // namespace
}  // namespace haulout::scenario
