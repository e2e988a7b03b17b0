// Admission webhooks for evictions: they deny for a while or for ever, fail, or run on the drained node.
#include "sim/status_bodies.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string denied = "admission webhook \"guard.example.com\" denied the request: ";

class Webhooks : public Scenario {
 protected:
  // Calls `judge` for each eviction. If `judge` returns a body, that is the server's answer.
  void webhook(std::function<std::optional<sim::StatusBody>(const sim::AuditEntry&)> judge) {
    cluster.server().intercept(
        [judge = std::move(judge)](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
          if (entry.subresource != "eviction") return std::nullopt;
          const auto body = judge(entry);
          return body ? std::optional(body->response()) : std::nullopt;
        });
  }
  static sim::StatusBody saying(int code, const std::string& reason, const std::string& message) {
    sim::StatusBody body;
    body.code = code;
    body.reason = reason;
    body.message = message;
    return body;
  }
  static sim::StatusBody cannot_be_called() {
    return saying(500, "InternalError",
                  "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: Post "
                  "\"https://guard.shop.svc:443/evict?timeout=10s\": EOF");
  }
  void expect_denied_for_ever(int code, const std::string& reason) {
    add_pods(8, {.grace = 5});
    add(a_pod("db", {.grace = 5}));
    webhook([=](const sim::AuditEntry& entry) {
      return entry.name == "db" ? std::optional(saying(code, reason, denied + "never")) : std::nullopt;
    });
    options.timeout = 5min;
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::blocked));
    EXPECT_THAT(pods_on("n1"), ElementsAre("db"));
    EXPECT_EQ(pod(report, "db").outcome, PodOutcome::waiting);
    EXPECT_EQ(pod(report, "db").reason, "AdmissionDenied");
    ASSERT_THAT(report.diagnoses, SizeIs(1));
    EXPECT_EQ(report.diagnoses[0].code, "WebhookDenied");
    EXPECT_THAT(report.diagnoses[0].message, AllOf(HasSubstr("shop/db"), HasSubstr("never")));
    EXPECT_LE(evictions().size(), 8u + 20u) << "15 s to 30 s between two tries in the end";
  }
  // Adds a webhook whose server runs on n1. A replacement of that server takes 60 s to start on any node.
  void guard_runs_on_this_node(const Json& ports) {
    Json guard = a_workload("Deployment", "guard", 1, {{"terminationGracePeriodSeconds", 30}},
                            {{"sim.haulout.dev/prefers-node", "n1"}});
    guard["spec"]["template"]["spec"]["containers"][0]["ports"] = ports;
    add(guard);
    after(0s, [this] { cluster.timing().pod_start = 60s; });
    webhook([this](const sim::AuditEntry&) -> std::optional<sim::StatusBody> {
      for (const Json& each : cluster.all("pods"))
        if (sim::name_of(each).starts_with("guard-") && sim::pod_ready(each) && !sim::terminating(each))
          return std::nullopt;
      return cannot_be_called();
    });
  }
};

// As in KubeVirt: the webhook answers the eviction with 429 and starts a migration of the virtual machine. The pod is
// deleted when the migration is done.
TEST_F(Webhooks, S33_OneThatSays429WhileAMachineMigrates) {
  add_pods(7, {.grace = 5});
  add(a_pod("vm", {.grace = 5}));
  bool asked = false;
  webhook([&](const sim::AuditEntry& entry) -> std::optional<sim::StatusBody> {
    if (entry.name != "vm") return std::nullopt;
    if (!std::exchange(asked, true)) cluster.after(3min, [this] { cluster.remove("pods", "shop", "vm"); });
    return saying(429, "TooManyRequests", denied + "Eviction triggered evacuation of VMI \"shop/vm\"");
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "vm").outcome, PodOutcome::gone);
  EXPECT_LT(took(), 3min + 1s);
  EXPECT_EQ(told.count(EventType::throttled), 0u) << "it speaks of this pod, not of the server";
  for (const auto& entry : told.entries) {
    if (entry.type == EventType::parked) EXPECT_THAT(entry.message, HasSubstr("evacuation of VMI"));
    if (entry.type == EventType::parked) EXPECT_EQ(entry.reason, "AdmissionDenied");
    if (entry.type == EventType::vanished && entry.pod != "shop/vm")
      EXPECT_LT(entry.at - report.started_at, 12s) << entry.pod << " waits for nobody";
  }
  EXPECT_LE(evictions().size(), 7u + 15u);
  EXPECT_THAT(report.diagnoses, IsEmpty());
}

TEST_F(Webhooks, S34_OneThatFailsOnceIsAskedAgain) {
  add_pods(3);
  webhook([failed = false](const sim::AuditEntry& entry) mutable {
    const bool fails = entry.name == "web-0" && !std::exchange(failed, true);
    return fails ? std::optional(cannot_be_called()) : std::nullopt;
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::evicted);
  EXPECT_THAT(evictions(), SizeIs(4));
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
  EXPECT_LT(took(), 12s);
}

TEST_F(Webhooks, S35_OneThatRunsOnThisNodeIsWaitedForUntilItIsUpElsewhere) {
  options.max_concurrent = 2;
  add({{"kind", "Service"},
       {"metadata", {{"namespace", "shop"}, {"name", "guard"}}},
       {"spec", {{"selector", {{"app", "guard"}}}}}});
  guard_runs_on_this_node(Json::array());
  add_pods(6, {.grace = 5});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const auto& each : report.pods) EXPECT_EQ(each.outcome, PodOutcome::evicted) << each.name;
  EXPECT_TRUE(told.raised("WebhookDown"));
  EXPECT_TRUE(told.withdrawn("WebhookDown"));
  EXPECT_THAT(told.message_of("WebhookDown"),
              HasSubstr(", is terminating on this node, and a replacement must become Ready"));
  EXPECT_LE(requests("get", "services").size(), 3u);
  EXPECT_THAT(report.diagnoses, IsEmpty());
  EXPECT_EQ(accepted_evictions(), 7u);
  EXPECT_GE(took(), 60s);
  EXPECT_LT(took(), 60s + 40s) << "asked again often enough to go on when it is up";
  EXPECT_LE(evictions().size(), 7u + 6u * 20u) << "and not all the time";
}

TEST_F(Webhooks, S35_InTheRightOrderNobodyHasToWaitForIt) {
  guard_runs_on_this_node({{{"name", "webhook-server"}, {"containerPort", 9443}}});
  add_pods(6, {.grace = 5});
  Json attacher = a_pod("attacher", {.grace = 60});
  attacher["status"]["containerStatuses"] = {
      {{"name", "main"}, {"image", "registry.k8s.io/sig-storage/csi-attacher:v4.6.1"}}};
  add(attacher);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  std::vector<std::string> sent;
  for (const auto& entry : told.entries)
    if (entry.type == EventType::eviction_sent) sent.push_back(entry.pod);
  ASSERT_THAT(sent, SizeIs(8));
  EXPECT_EQ(sent[6], "shop/attacher") << "the others may need their volumes attached elsewhere";
  EXPECT_THAT(sent[7], ::testing::StartsWith("shop/guard-"));
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 0u);
}

TEST_F(Webhooks, WhoMayNotReadServicesIsToldWithoutThem) {
  cluster.forbid("get", "services");
  add_pods(1);
  bool down = true;
  after(5min, [&] { down = false; });
  webhook([&](const sim::AuditEntry&) { return down ? std::optional(cannot_be_called()) : std::nullopt; });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(told.message_of("WebhookDown"), HasSubstr("check that its server runs, usually pods behind a Service;"));
  EXPECT_THAT(requests("get", "services"), SizeIs(2)) << "one refusal right after a reconnect proves nothing";
}

TEST_F(Webhooks, S36_OneThatDeniesForEver) {
  expect_denied_for_ever(400, "");
}

TEST_F(Webhooks, S36_AlsoWithACodeOfItsOwn) {
  expect_denied_for_ever(403, "Forbidden");
}

}  // namespace
}  // namespace haulout::scenario
