// Pods of DaemonSets that the drain evicts after all others (--evict-daemonset-pods), on the simulated cluster.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
namespace {
using namespace std::chrono_literals;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class DaemonSets : public Scenario {
 protected:
  DaemonSets() { evict("app=logs"); }
  void evict(const std::string& selector) {
    options.policy.evict_daemon_sets = {k8s::parse_label_selector(selector).value()};
  }
  // Adds a DaemonSet. Its pods have the label app=NAME, and the simulated DaemonSet controller creates them.
  void add_daemon_set(const std::string& name, std::int64_t grace = 10) {
    add(a_workload("DaemonSet", name, 0, {{"terminationGracePeriodSeconds", grace}},
                   {{"sim.haulout.dev/terminates-after", std::to_string(grace) + "s"}}));
  }
  // A drain evicts the pod of "logs" and gives up on that of "traces", behind a budget that opens after that. The
  // node stays cordoned.
  void give_up_on_traces() {
    evict("app in (logs,traces)");
    add_daemon_set("logs");
    add_daemon_set("traces");
    add(a_budget("closed", {{"minAvailable", 10}, {"selector", {{"matchLabels", {{"app", "traces"}}}}}}));
    options.restore_cordon_on_failure = false;
    options.timeout = 3min;
    EXPECT_THAT(drain(), Ended(Outcome::blocked));
    EXPECT_THAT(evicted(), ElementsAre(StartsWith("logs-")));
    EXPECT_THAT(pods_of("logs"), SizeIs(1));
    cluster.patch("poddisruptionbudgets", "shop", "closed", {{"spec", {{"minAvailable", 0}}}});
  }
  // Returns the names of the pods whose evictions the server has accepted.
  std::vector<std::string> evicted() const {
    std::vector<std::string> names;
    for (const auto& entry : evictions())
      if (entry.status == 201) names.push_back(entry.name);
    return names;
  }
  // Returns the names of the pods of a DaemonSet on the node.
  std::vector<std::string> pods_of(const std::string& daemon_set) const {
    std::vector<std::string> names;
    for (const std::string& name : pods_on("n1"))
      if (name.starts_with(daemon_set + "-")) names.push_back(name);
    return names;
  }
};

// While the pod of "traces" ends, the next pod of "logs" comes.
TEST_F(DaemonSets, AreEvictedWhenAllOthersAreDeletedAndMayComeBack) {
  evict("app in (logs,traces)");
  add_daemon_set("logs");
  add_daemon_set("traces", 90);
  add_daemon_set("net");
  add_pods(2, {.grace = 60, .annotations = {{"sim.haulout.dev/terminates-after", "60s"}}});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evicted(),
              ElementsAre(StartsWith("web-"), StartsWith("web-"), StartsWith("traces-"), StartsWith("logs-")));
  EXPECT_GE(evictions()[2].time - evictions()[0].time, 60s) << "they still send what the others have written";
  const std::string first = evictions().back().name;
  EXPECT_EQ(pod(report, first).outcome, PodOutcome::evicted);
  ASSERT_THAT(pods_of("logs"), SizeIs(1));
  const std::string second = pods_of("logs").front();
  EXPECT_NE(second, first);
  EXPECT_EQ(pod(report, second).reason, "DaemonSetManaged");
  EXPECT_THAT(pods_of("net"), SizeIs(1));
}

TEST_F(DaemonSets, TheDrainWaitsUntilTheyHaveEnded) {
  add_daemon_set("logs", 90);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(took(), 90s);
}

// The agent that is restarted knows from its record which DaemonSets have pods in place of evicted ones.
TEST_F(DaemonSets, WhatAnEarlierProcessHasEvictedIsNotEvictedAgain) {
  give_up_on_traces();
  evicted_before = {"logs-uid"};
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre(StartsWith("logs-"), StartsWith("traces-")));
}

// A new run is a new drain: what runs now gets its time, too.
TEST_F(DaemonSets, ANewRunEvictsThemAgain) {
  give_up_on_traces();
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), UnorderedElementsAre(StartsWith("logs-"), StartsWith("logs-"), StartsWith("traces-")));
}

// The DaemonSet is rolled out while the drain waits for another pod. The new pod collects for hours, so it is evicted.
TEST_F(DaemonSets, WhatCameBeforeTheirTurnIsEvicted) {
  add_daemon_set("logs");
  add_pods(1, {.grace = 3600, .annotations = {{"sim.haulout.dev/terminates-after", "3600s"}}});
  std::string first;
  after(10min, [&] {
    ASSERT_THAT(pods_of("logs"), SizeIs(1));
    first = pods_of("logs").front();
    cluster.delete_gracefully("pods", "shop", first);
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  ASSERT_THAT(evicted(), ElementsAre("web-0", StartsWith("logs-")));
  EXPECT_NE(evicted().back(), first);
}

// The eviction brings the new template of a DaemonSet with the strategy OnDelete. Its labels do not match any more.
TEST_F(DaemonSets, WhatComesInPlaceOfAnEvictedPodStaysWhateverItsLabelsAre) {
  options.policy.daemon_set = drain::Treatment::refuse;
  evict("version=one");
  for (const char* name : {"logs", "traces"}) {
    add_daemon_set(name, name == std::string("logs") ? 10 : 90);
    const Json label = {{"version", "one"}};
    cluster.patch("daemonsets", "shop", name, {{"spec", {{"template", {{"metadata", {{"labels", label}}}}}}}});
  }
  after(1min, [&] {
    cluster.patch("daemonsets", "shop", "logs",
                  {{"spec", {{"template", {{"metadata", {{"labels", {{"version", "two"}}}}}}}}}});
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(pods_of("logs"), SizeIs(1));
}

// A pod of a DaemonSet that gets the label during the drain waits for its turn, too.
TEST_F(DaemonSets, ALabelThatComesLaterSelectsToo) {
  add_daemon_set("net");
  add_pods(1, {.grace = 600, .annotations = {{"sim.haulout.dev/terminates-after", "600s"}}});
  after(1min, [&] {
    ASSERT_THAT(pods_of("net"), SizeIs(1));
    cluster.patch("pods", "shop", pods_of("net").front(), {{"metadata", {{"labels", {{"app", "logs"}}}}}});
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  ASSERT_THAT(evicted(), ElementsAre("web-0", StartsWith("net-")));
  EXPECT_GE(evictions().back().time - evictions().front().time, 600s);
}

// The pod never finishes, so a rule or a label that waits for that has no effect.
TEST_F(DaemonSets, AreNotWaitedForAsWork) {
  options.policy.rules = {drain::parse_pod_rule("namespace:shop=wait-completed").value()};
  add_daemon_set("logs");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre(StartsWith("logs-")));
}

TEST_F(DaemonSets, ADryRunCountsThemAndChangesNothing) {
  options.dry_run = drain::DryRunMode::client;
  add_daemon_set("logs");
  const auto report = drain();
  EXPECT_EQ(report.pods.size(), 1u);
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_FALSE(unschedulable());
}

TEST_F(DaemonSets, AreDeletedLastIfTheDrainDeletes) {
  options.delete_instead_of_evict = true;
  add_daemon_set("logs");
  add_pods(2, {.grace = 60, .annotations = {{"sim.haulout.dev/terminates-after", "60s"}}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(took(), 70s);
}

// Haulout's own DaemonSet would start it again at once, so its eviction would only interrupt the drain.
TEST_F(DaemonSets, ThePodInWhichHauloutRunsStays) {
  add(a_pod("logs-own", {.owner_kind = "DaemonSet",
                         .owner_name = "logs",
                         .owner_uid = "logs-uid",
                         .labels = {{"app", "logs"}},
                         .metadata = {{"uid", "own-uid"}}}));
  add_daemon_set("logs");
  options.own_pod_uid = "own-uid";
  add_pods(1);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("web-0"));
}

// kubectl's flag is still needed for the DaemonSets that are not selected.
TEST_F(DaemonSets, TheOthersAreStillRefused) {
  options.policy.daemon_set = drain::Treatment::refuse;
  add_daemon_set("logs");
  add_daemon_set("net");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message, HasSubstr("net-"));
  EXPECT_THAT(report.message, Not(HasSubstr("logs-")));
  EXPECT_FALSE(unschedulable());
}

// A DaemonSet makes its pod again on this node, so it needs no room on another one.
TEST_F(DaemonSets, NeedNoRoomElsewhere) {
  options.fit = drain::FitPolicy::require;
  add_daemon_set("logs");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

}  // namespace
}  // namespace haulout::scenario
