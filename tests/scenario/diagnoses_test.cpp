// Diagnoses: each one is raised, is withdrawn when it is resolved, and names the remedy and who must act.
#include "k8s/codec.hpp"
#include "sim/status_bodies.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Diagnoses : public Scenario {
 protected:
  void add_deployment(int replicas, Json annotations = Json::object()) {
    annotations["sim.haulout.dev/prefers-node"] = "n1";
    add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 1}}, annotations));
  }
  void scale(int replicas) { cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", replicas}}}}); }
  void change_budget(const Json& spec) { cluster.patch("poddisruptionbudgets", "shop", "web", {{"spec", spec}}); }
  // Time from the first parked pod until the diagnosis was raised.
  Duration told_after(const std::string& code) const {
    WallTime parked = WallTime::max();
    for (const auto& entry : told.entries)
      if (entry.type == EventType::parked) parked = std::min(parked, entry.at);
    const auto raised = told.time_of(EventType::diagnosis_raised, code);
    return raised ? Duration(*raised - parked) : Duration::max();
  }
  void expect_raised_and_healed(const drain::Report& report, const std::string& code) {
    EXPECT_THAT(report, Ended(Outcome::drained));
    EXPECT_TRUE(told.raised(code)) << code;
    EXPECT_TRUE(told.withdrawn(code)) << code;
    EXPECT_THAT(report.diagnoses, IsEmpty());
  }
  void refuse_evictions(Duration how_long, int code, const std::string& reason, const std::string& message) {
    sim::StatusBody body;
    body.code = code;
    body.reason = reason;
    body.message = message;
    const TimePoint until = clock.now() + how_long;
    cluster.server().intercept([this, until, body](const sim::Call&, const sim::AuditEntry& entry) {
      if (entry.subresource != "eviction" || clock.now() >= until) return std::optional<http::Response>();
      return std::optional(body.response());
    });
  }
  // The webhook denies two pods for a while. One diagnosis must cover both.
  void expect_one_denial(const std::string& code, const char* words) {
    add_pods(2);
    expect_raised_and_healed(drain(), code);
    EXPECT_LE(told_after(code), 30s);
    EXPECT_THAT(told.message_of(code), HasSubstr(words));
    EXPECT_EQ(told.count(EventType::diagnosis_raised), 1u) << "one who denies, one finding";
  }
};

TEST_F(Diagnoses, ABudgetThatNeedsAllOfItsPods) {
  add_deployment(3);
  add(a_budget("web", {{"minAvailable", 3}}));
  after(60s, [this] { scale(4); });
  expect_raised_and_healed(drain(), "BudgetNeedsAllPods");
  EXPECT_LE(told_after("BudgetNeedsAllPods"), 30s);
  EXPECT_THAT(told.message_of("BudgetNeedsAllPods"), HasSubstr("needs 3 healthy pods ("));
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 1u) << "one budget, one finding";
}

TEST_F(Diagnoses, ABudgetOfASingleReplica) {
  add_deployment(1);
  add(a_budget("web", {{"minAvailable", 1}}));
  after(60s, [this] { scale(2); });
  expect_raised_and_healed(drain(), "BudgetOfSinglePod");
  EXPECT_LE(told_after("BudgetOfSinglePod"), 30s);
  EXPECT_FALSE(told.raised("BudgetNeedsAllPods"));
}

TEST_F(Diagnoses, ABudgetThatCountsNoPods) {
  add_pods(1, {.owner_kind = ""});
  add(a_budget("web", {{"maxUnavailable", 1}}));
  after(60s, [this] { change_budget({{"maxUnavailable", nullptr}, {"minAvailable", 0}}); });
  expect_raised_and_healed(drain(), "BudgetMisconfigured");
  EXPECT_LE(told_after("BudgetMisconfigured"), 30s);
}

TEST_F(Diagnoses, ABudgetThatCannotBeComputed) {
  add_pods(1, {.owner_kind = "Foo", .owner_api = "example.com/v1"});
  add(a_budget("web", {{"maxUnavailable", 1}}));
  after(60s, [this] { change_budget({{"maxUnavailable", nullptr}, {"minAvailable", 0}}); });
  expect_raised_and_healed(drain(), "BudgetSyncFailed");
  EXPECT_LE(told_after("BudgetSyncFailed"), 30s);
  EXPECT_THAT(told.message_of("BudgetSyncFailed"), HasSubstr("no matches for kind \"Foo\""));
}

TEST_F(Diagnoses, ABudgetThatItsControllerDoesNotSee) {
  add_deployment(2);
  cluster.stop_disruption_controller();
  add(a_budget("web", {{"maxUnavailable", 1}}));
  after(2min, [this] { cluster.start_disruption_controller(); });
  expect_raised_and_healed(drain(), "BudgetNotObserved");
  EXPECT_GE(told_after("BudgetNotObserved"), 60s);
  std::map<std::string, TimePoint> asked;
  for (const auto& entry : evictions()) {
    const auto before = std::exchange(asked[entry.name], entry.time);
    if (before != TimePoint{} && entry.time < start + 2min) EXPECT_GE(entry.time - before, 10s) << "Retry-After";
  }
}

TEST_F(Diagnoses, ABudgetThatWaitsForTheDeletionOfTooManyPods) {
  add_deployment(2);
  add(a_budget("web", {{"maxUnavailable", 1}}));
  cluster.server().on_answer([this, done = false](const sim::AuditEntry& entry) mutable {
    if (entry.verb != "patch" || entry.resource != "nodes" || std::exchange(done, true)) return;
    Json disrupted = Json::object();
    for (int i = 0; i < 2001; ++i) disrupted["old-" + std::to_string(i)] = k8s::format_time(clock.wall_now());
    cluster.stop_disruption_controller();
    cluster.patch("poddisruptionbudgets", "shop", "web", {{"status", {{"disruptedPods", disrupted}}}});
  });
  after(2min, [this] { cluster.start_disruption_controller(); });
  expect_raised_and_healed(drain(), "BudgetMapTooBig");
  EXPECT_LE(told_after("BudgetMapTooBig"), 30s);
}

TEST_F(Diagnoses, SickPodsUnderABudgetThatTheyKeepClosed) {
  add_deployment(2, {{"sim.haulout.dev/never-ready", "true"}});
  add(a_budget("web", {{"minAvailable", 1}}));
  after(60s, [this] { change_budget({{"unhealthyPodEvictionPolicy", "AlwaysAllow"}}); });
  expect_raised_and_healed(drain(), "BudgetUnhealthyDeadlock");
  EXPECT_LE(told_after("BudgetUnhealthyDeadlock"), 30s);
  EXPECT_THAT(told.message_of("BudgetUnhealthyDeadlock"), HasSubstr("AlwaysAllow"));
}

TEST_F(Diagnoses, S28_SickPodsThatMayAlwaysLeave) {
  add_deployment(2, {{"sim.haulout.dev/never-ready", "true"}});
  add(a_budget("web", {{"minAvailable", 1}, {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evictions(), ::testing::SizeIs(2)) << "the budget is closed, and nobody waits for it";
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
  EXPECT_LT(took(), 10s);
}

TEST_F(Diagnoses, AReplacementElsewhereThatDoesNotBecomeReady) {
  add_deployment(2);
  add(a_workload("Deployment", "canary", 1, {},
                 {{"sim.haulout.dev/prefers-node", "n2"}, {"sim.haulout.dev/starts-after", "240s"}}));
  add(a_budget("web", {{"minAvailable", 2}}));
  expect_raised_and_healed(drain(), "BudgetAwaitsReplacement");
  EXPECT_LE(told_after("BudgetAwaitsReplacement"), 30s);
  EXPECT_THAT(told.message_of("BudgetAwaitsReplacement"), HasSubstr("shop/canary"));
  EXPECT_LE(requests("list", "pods").size(), 8u) << "asked ever more rarely";
}

TEST_F(Diagnoses, WithoutTheRightToSeeOtherPodsItIsSaidWithoutThem) {
  add_deployment(2);
  add(a_workload("Deployment", "canary", 1, {},
                 {{"sim.haulout.dev/prefers-node", "n2"}, {"sim.haulout.dev/starts-after", "600s"}}));
  add(a_budget("web", {{"minAvailable", 2}}));
  after(1s, [this] { cluster.forbid("list", "pods"); });
  after(9min, [this] { cluster.permit("list", "pods"); });
  expect_raised_and_healed(drain(), "BudgetAwaitsReplacement");
  EXPECT_THAT(told.message_of("BudgetAwaitsReplacement"), HasSubstr("kubectl get pods -n shop"));
}

TEST_F(Diagnoses, AnEvictionThatIsCountedAndNeverBecameADeletion) {
  add_deployment(3);
  add(a_budget("web", {{"minAvailable", 2}}));
  after(0s, [this] {
    const std::string name = pods_on("n1").front();
    cluster.patch(
        "poddisruptionbudgets", "shop", "web",
        {{"status", {{"disruptionsAllowed", 0}, {"disruptedPods", {{name, k8s::format_time(clock.wall_now())}}}}}});
  });
  expect_raised_and_healed(drain(), "BudgetDisruptionPending");
  EXPECT_LE(told_after("BudgetDisruptionPending"), 30s);
  EXPECT_THAT(told.message_of("BudgetDisruptionPending"), HasSubstr("at the latest"));
}

// The budget has allowed one eviction, but then the stopped disruption controller does not update its status any more.
TEST_F(Diagnoses, AnEvictionThatNobodyCountsAnyMore) {
  add_deployment(3);
  add(a_budget("web", {{"minAvailable", 2}}));
  after(0s, [this] { cluster.stop_disruption_controller(); });
  after(140s, [this] {
    EXPECT_TRUE(told.raised("BudgetDisruptionPending"));
    EXPECT_FALSE(told.raised("BudgetNotObserved"));
  });
  after(175s, [this] {
    EXPECT_TRUE(told.raised("BudgetNotObserved"));
    EXPECT_TRUE(told.withdrawn("BudgetDisruptionPending"));
  });
  after(5min, [this] { cluster.start_disruption_controller(); });
  expect_raised_and_healed(drain(), "BudgetNotObserved");
}

TEST_F(Diagnoses, AWebhookThatDenies) {
  refuse_evictions(2min, 400, "", "admission webhook \"a.example.com\" denied the request: migrating");
  expect_one_denial("WebhookDenied", "migrating");
}

TEST_F(Diagnoses, APolicyThatDenies) {
  refuse_evictions(2min, 422, "Invalid",
                   "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep-all' denied "
                   "request: not on a Friday");
  expect_one_denial("AdmissionDenied", "not on a Friday");
}

TEST_F(Diagnoses, AWebhookThatIsDown) {
  add_pods(1);
  refuse_evictions(2min, 500, "InternalError",
                   "Internal error occurred: failed calling webhook \"a.example.com\": failed to call "
                   "webhook: connect: connection refused");
  expect_raised_and_healed(drain(), "WebhookDown");
  EXPECT_LE(told_after("WebhookDown"), 30s);
}

TEST_F(Diagnoses, ANamespaceThatDoesNotDie) {
  add_pods(1);
  cluster.timing().namespace_lag = 1h;
  after(0s, [this] {
    cluster.terminate_namespace("shop");
    cluster.patch("namespaces", "", "shop",
                  {{"status",
                    {{"conditions",
                      {{{"type", "NamespaceFinalizersRemaining"},
                        {"status", "True"},
                        {"message", "example.com/x in 1 resource instances"}}}}}}});
  });
  after(10min, [this] { cluster.remove("pods", "shop", "web-0"); });
  expect_raised_and_healed(drain(), "NamespaceStuckTerminating");
  EXPECT_THAT(told.message_of("NamespaceStuckTerminating"), HasSubstr("example.com/x in 1 resource instances"));
}

TEST_F(Diagnoses, APodThatDoesNotEnd) {
  add(a_pod("db", {.annotations = {{"sim.haulout.dev/never-terminates", "true"}}}));
  after(5min, [this] { cluster.remove("pods", "shop", "db"); });
  expect_raised_and_healed(drain(), "PodStuckTerminating");
}

TEST_F(Diagnoses, ANodeWhoseKubeletIsSilent) {
  add_pods(2, {.grace = 5});
  after(2s, [this] { cluster.node_down("n1"); });
  after(3min, [this] { cluster.node_up("n1"); });
  expect_raised_and_healed(drain(), "KubeletNotReady");
  EXPECT_FALSE(told.raised("PodStuckTerminating")) << "one cause for all pods";
}

TEST_F(Diagnoses, AVolumeThatExistsOnThisNodeOnly) {
  Json volume = a_volume("data");
  volume["items"][0]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = {
      {{"matchExpressions", {{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {"n1"}}}}}}};
  add(volume);
  add(a_pod("db-0", {.spec = mounting({"data"})}));
  add(a_budget("web", {{"maxUnavailable", 0}}));
  after(60s, [this] { cluster.remove("poddisruptionbudgets", "shop", "web"); });
  options.volumes = drain::VolumeWait::off;
  expect_raised_and_healed(drain(), "LocalVolume");
  EXPECT_LE(told_after("LocalVolume"), 30s);
  EXPECT_THAT(told.message_of("LocalVolume"), HasSubstr("pv-data"));
  EXPECT_EQ(requests("get", "persistentvolumeclaims").size(), 1u);
}

TEST_F(Diagnoses, APodThatIsNotToBeDisrupted) {
  add(a_pod("batch", {.annotations = {{"karpenter.sh/do-not-disrupt", "true"}}}));
  after(60s, [this] { cluster.patch("pods", "shop", "batch", {{"metadata", {{"annotations", nullptr}}}}); });
  expect_raised_and_healed(drain(), "DoNotDisrupt");
  EXPECT_LE(told_after("DoNotDisrupt"), 30s);
}

TEST_F(Diagnoses, APodThatComesBackAgainAndAgain) {
  const Json everywhere = {{{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}}};
  add(a_workload("StatefulSet", "db", 1, {{"terminationGracePeriodSeconds", 8}, {"tolerations", everywhere}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_pod("slow", {.grace = 120}));
  after(5min, [this] {
    cluster.patch("statefulsets", "shop", "db", {{"spec", {{"replicas", 0}}}});
    cluster.delete_gracefully("pods", "shop", "db-0");
  });
  expect_raised_and_healed(drain(), "PodPinned");
  EXPECT_THAT(told.message_of("PodPinned"),
              AllOf(HasSubstr("StatefulSet db has created pods on this cordoned node"), HasSubstr("--pinned leave")));
}

TEST_F(Diagnoses, EvictionsThatAreNotAllowedForAWhile) {
  options.max_concurrent = 1;
  add_pods(3, {.grace = 5});
  after(2s, [this] { cluster.forbid("create", "pods/eviction"); });
  after(5min, [this] { cluster.permit("create", "pods/eviction"); });
  expect_raised_and_healed(drain(), "RightMissing");
  EXPECT_LE(told_after("RightMissing"), 30s);
  EXPECT_THAT(told.message_of("RightMissing"), HasSubstr("grant verb create on resource pods/eviction"));
}

TEST_F(Diagnoses, OnlyHauloutItselfIsLeft) {
  add_pods(2);
  add(a_pod("haulout", {.grace = 60, .metadata = {{"uid", "own-uid"}}}));
  options.own_pod_uid = "own-uid";
  expect_raised_and_healed(drain(), "OnlyOwnPodLeft");
}

TEST_F(Diagnoses, ADrainThatNothingHoldsUpAsksNothingMore) {
  add_deployment(3);
  add(a_pod("db-0", {.spec = mounting({"data"})}));
  add(a_budget("web", {{"maxUnavailable", 1}}));
  options.volumes = drain::VolumeWait::off;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(requests("get", "persistentvolumeclaims"), IsEmpty());
  EXPECT_LE(requests("list", "pods").size(), 2u);
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
}

}  // namespace
}  // namespace haulout::scenario
