// Checks whether pods fit on other nodes, before the drain changes anything.
#include "sim/status_bodies.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::FitPolicy;
using drain::Outcome;
using placement::Fit;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Node n1 is drained. Node n2 has two CPUs, and n3 is cordoned.
class FitElsewhere : public Scenario {
 protected:
  FitElsewhere() {
    for (const char* node : {"n1", "n2", "n3"})
      cluster.patch("nodes", "", node, {{"status", {{"allocatable", {{"cpu", "2"}, {"pods", "20"}}}}}});
    cluster.patch("nodes", "", "n3", {{"spec", {{"unschedulable", true}}}});
    options.timeout = 2min;
  }
  static Json asking(const char* cpu) {
    return {{"containers", {{{"name", "m"}, {"image", "i"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}};
  }
  // Adds a workload whose pod is recreated on another node when it is evicted.
  void add_workload(const std::string& name, const char* cpu) {
    Json workload = a_workload("ReplicaSet", name, 1, {{"terminationGracePeriodSeconds", 3}},
                               {{"sim.haulout.dev/prefers-node", "n1"}});
    workload["spec"]["template"]["spec"]["containers"] = asking(cpu)["containers"];
    add(workload);
  }
  // Returns the fit results of the report, by workload.
  static std::map<std::string, Fit> verdicts(const drain::Report& report) {
    std::map<std::string, Fit> result;
    for (const placement::PodFit& fit : report.fits)
      result[fit.pod.substr(fit.pod.find('/') + 1, fit.pod.rfind('-') - fit.pod.find('/') - 1)] = fit.fit;
    return result;
  }
  // Answers the list of all running pods of the cluster with `body`.
  void answer_cluster_list(const std::string& body) {
    cluster.server().intercept([body](const sim::Call& call, const sim::AuditEntry&) {
      const bool asked = call.verb == "list" && call.option("fieldSelector").starts_with("status.phase");
      return asked ? std::optional(sim::json_response(200, body)) : std::nullopt;
    });
  }
  bool touched() const { return !evictions().empty() || unschedulable(); }
};

TEST_F(FitElsewhere, IsNotAskedUnlessWanted) {
  add_workload("large", "1900m");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  for (const sim::AuditEntry& entry : cluster.audit())
    EXPECT_FALSE(entry.verb == "list" && entry.resource == "nodes") << "an agent of thousands does not list them";
}

TEST_F(FitElsewhere, BlockTouchesNothingWhenAPodDoesNotFit) {
  options.fit = FitPolicy::block;
  add_workload("large", "1800m");
  add_workload("small", "150m");
  add(a_pod("taken", {.node = "n2", .spec = asking("1500m")}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_FALSE(touched());
  EXPECT_THAT(verdicts(report), ElementsAre(std::pair("large", Fit::does_not_fit), std::pair("small", Fit::fits)));
  EXPECT_THAT(report.message, AllOf(HasSubstr("shop/large-"),
                                    HasSubstr("0/3 nodes are available: 1 Insufficient cpu, "
                                              "2 node(s) were unschedulable."),
                                    HasSubstr("nothing was changed"), Not(HasSubstr("shop/small-"))));
}

// The simulated scheduler's result after the drain must match the prediction.
TEST_F(FitElsewhere, WarnSaysItAndGoesOn) {
  options.fit = FitPolicy::warn;
  add_workload("large", "1800m");
  add_workload("small", "150m");
  add(a_pod("taken", {.node = "n2", .spec = asking("1500m")}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(told.count(EventType::fit_checked), 1u);
  EXPECT_THAT(verdicts(report), ElementsAre(std::pair("large", Fit::does_not_fit), std::pair("small", Fit::fits)));
  std::map<std::string, std::string> where;
  for (const Json& pod : cluster.all("pods")) {
    const std::string app = sim::text(pod, "/metadata/labels/app");
    const std::string why = sim::text(sim::condition(pod, "PodScheduled"), "/message");
    if (!app.empty()) where[app] = sim::text(pod, "/spec/nodeName") + why;
  }
  EXPECT_EQ(where["small"], "n2");
  EXPECT_THAT(report.fits, SizeIs(2));
  EXPECT_EQ(where["large"], report.fits[0].message);
}

TEST_F(FitElsewhere, AllThatFitIsNoNews) {
  options.fit = FitPolicy::require;
  add_workload("large", "1800m");
  add_workload("small", "150m");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(verdicts(report), ElementsAre(std::pair("large", Fit::fits), std::pair("small", Fit::fits)));
  EXPECT_EQ(told.count(EventType::fit_checked), 0u);
}

// An unknown result does not count as "fits". `require` refuses the drain, and `block` only reports the result.
TEST_F(FitElsewhere, WhatIsNotKnownIsSaidAndStopsWhoRequiresToKnow) {
  Json spec = asking("100m");
  spec["schedulerName"] = "volcano";
  add(a_pod("foreign", {.spec = spec}));
  options.fit = FitPolicy::require;
  const auto refused = drain();
  EXPECT_THAT(refused, Ended(Outcome::refused));
  EXPECT_FALSE(touched());
  EXPECT_THAT(refused.message, AllOf(HasSubstr("shop/foreign"), HasSubstr("volcano")));

  options.fit = FitPolicy::block;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(told.count(EventType::fit_checked), 1u);
}

TEST_F(FitElsewhere, WithoutTheRightToLookNothingIsKnown) {
  add_workload("small", "150m");
  cluster.forbid("list", "nodes");
  options.fit = FitPolicy::block;
  const auto refused = drain();
  EXPECT_THAT(refused, Ended(Outcome::failed));
  EXPECT_TRUE(refused.connection_failed);
  EXPECT_FALSE(touched());
  EXPECT_THAT(refused.message, HasSubstr("nodes"));

  options.fit = FitPolicy::warn;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(verdicts(report), ElementsAre(std::pair("small", Fit::unknown)));
  EXPECT_EQ(told.count(EventType::fit_checked), 1u);
}

// With `warn`, the drain waits for the list only as long as for other optional requests. With `block`, it waits until
// its own deadline.
TEST_F(FitElsewhere, AListThatKeepsFailingHoldsNoDrainUpThatOnlyWarns) {
  add_workload("small", "150m");
  sim::FaultTransport faults(cluster.api(), clock, world_rng);
  faults.add({.verb = "list", .resource = "nodes", .fault = {.kind = sim::FaultKind::server_error}});
  way = &faults;
  options.timeout = 1h;
  options.fit = FitPolicy::block;
  const auto blocked = drain();
  EXPECT_THAT(blocked, Not(Ended(Outcome::drained)));
  EXPECT_GT(took(), 50min);
  EXPECT_FALSE(touched());

  options.fit = FitPolicy::warn;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 2min);
  EXPECT_THAT(verdicts(report), ElementsAre(std::pair("small", Fit::unknown)));
  EXPECT_EQ(told.count(EventType::fit_checked), 1u);
}

// An agent restarts during the drain. The pods that it has already evicted use the capacity now. So the drain that
// continues is not refused for want of capacity.
TEST_F(FitElsewhere, ADrainThatGoesOnIsNotGivenUpForWantOfRoom) {
  options.fit = FitPolicy::block;
  options.run_id = "one-update";
  options.restore_cordon_on_failure = false;
  options.timeout = 5s;
  add_workload("first", "1");
  add(a_pod("slow", {.grace = 60, .spec = asking("800m")}));
  EXPECT_THAT(drain(), Ended(Outcome::blocked)) << "there was room for both";
  add(a_pod("taken", {.node = "n2", .spec = asking("900m")}));
  add(a_pod("late", {.spec = asking("800m")}));
  options.timeout = 5min;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(FitElsewhere, NodesThatAreDrainedTogetherAcceptNoPods) {
  options.fit = FitPolicy::block;
  options.drained_together = {"n1", "n2"};
  add_workload("small", "150m");
  EXPECT_THAT(drain(), Ended(Outcome::refused));
  EXPECT_THAT(pods_on("n1"), SizeIs(1));
}

TEST_F(FitElsewhere, AnExpiredContinueTokenRestartsTheList) {
  options.fit = FitPolicy::require;
  options.page_size = 2;
  add_workload("small", "150m");
  for (int i = 0; i < 5; ++i) add(a_pod("other-" + std::to_string(i), {.node = "n2", .spec = asking("10m")}));
  int times = 0;
  cluster.server().intercept([this, &times](const sim::Call& call, const sim::AuditEntry&) {
    const bool of_cluster = call.verb == "list" && call.option("fieldSelector").starts_with("status.phase");
    if (of_cluster && !call.option("continue").empty() && ++times == 1) cluster.expire_continue_tokens();
    return std::optional<http::Response>();
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(times, 2);
}

// Promise P4: an answer that is not a list of pods does not count as an empty list.
TEST_F(FitElsewhere, AnotherObjectIsNoEmptyList) {
  options.fit = FitPolicy::require;
  add_workload("small", "150m");
  answer_cluster_list(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}})");
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(touched());
}

TEST_F(FitElsewhere, AListWithoutItemsIsNoEmptyList) {
  options.fit = FitPolicy::require;
  add_workload("small", "150m");
  answer_cluster_list(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"}})");
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(touched());
}

TEST_F(FitElsewhere, RequireWantsAnAnswerForEachPod) {
  options.fit = FitPolicy::require;
  add_workload("small", "150m");
  answer_cluster_list(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]})");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(verdicts(report), ElementsAre(std::pair("small", Fit::unknown)));
  EXPECT_FALSE(touched());
}

}  // namespace
}  // namespace haulout::scenario
