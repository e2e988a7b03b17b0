// An eviction request as a signal: webhooks and controllers move a pod because they see the request, although the pod's
// budget never allows a disruption.
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
using ::testing::Not;
using ::testing::SizeIs;

class Signals : public Scenario {
 protected:
  using Judge = std::function<sim::Admission(const sim::AuditEntry&)>;

  void webhook(Judge judge) { cluster.server().admit_evictions(std::move(judge)); }
  // Adds a virtual machine's pod with a budget of its own that never allows a disruption.
  void add_machine(const std::string& name) {
    add(a_pod("virt-launcher-" + name, {.grace = 5,
                                        .owner_kind = "VirtualMachineInstance",
                                        .owner_name = name,
                                        .owner_uid = name + "-uid",
                                        .owner_api = "kubevirt.io/v1",
                                        .labels = {{"vm", name}}}));
    add(a_budget("kubevirt-" + name, {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"vm", name}}}}}}));
  }
  // The first eviction request for a machine's pod starts its migration, which takes this long.
  void machines_migrate(Duration takes) {
    webhook([this, takes](const sim::AuditEntry& entry) -> sim::Admission {
      if (!entry.name.starts_with("virt-launcher-") || !moving.insert(entry.name).second) return {};
      cluster.patch("pods", "shop", entry.name,
                    {{"metadata", {{"annotations", {{"kubevirt.io/evacuationNodeName", "n1"}}}}}});
      cluster.after(takes, [this, name = entry.name] { cluster.remove("pods", "shop", name); });
      return {};
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
                  "\"https://guard.shop.svc:443/evict?timeout=10s\": context deadline exceeded");
  }
  std::size_t evictions_of(const std::string& pod) const {
    const auto all = evictions();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == pod; }));
  }

  std::set<std::string> moving;
};

// For comparison: kubectl 1.36.3 sends requests at 0, 5 and 10 s and ends after 10.2 s.
TEST_F(Signals, S78_AVirtualMachineMigratesBecauseItsPodIsAskedFor) {
  options.settle = 0s;
  add_machine("vm");
  machines_migrate(6s);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 7s);
  EXPECT_EQ(pod(report, "virt-launcher-vm").outcome, PodOutcome::gone);
  EXPECT_GE(evictions().size(), 1u);
  EXPECT_LE(evictions().size(), 3u);
  EXPECT_EQ(accepted_evictions(), 0u);
  EXPECT_EQ(told.count(EventType::signal_sent), evictions().size());
  EXPECT_EQ(told.count(EventType::eviction_sent), 0u);
}

TEST_F(Signals, S78_FiveOfThemAtOnceAndTheMigrationIsNamed) {
  for (const char* name : {"a", "b", "c", "d", "e"}) add_machine(name);
  machines_migrate(60s);
  options.max_concurrent = 1;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 60s + 7s);
  const std::string told_of = told.message_of("BudgetOfSinglePod");
  EXPECT_THAT(told_of, AllOf(HasSubstr("is being migrated to another node"), Not(HasSubstr("by hand"))));
}

TEST_F(Signals, S79_AnOperatorRollsThePodsThatItsWebhookHasNoted) {
  const PodSpec broker{.grace = 3,
                       .owner_kind = "StrimziPodSet",
                       .owner_name = "kafka",
                       .owner_uid = "kafka-uid",
                       .owner_api = "core.strimzi.io/v1beta2",
                       .labels = {{"app", "kafka"}}};
  add_pods(3, broker, "kafka");
  add(a_budget("kafka", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "kafka"}}}}}}));
  add_pods(10, {.grace = 3}, "free");
  Duration next = 90s;
  webhook([&, this](const sim::AuditEntry& entry) -> sim::Admission {
    if (!entry.name.starts_with("kafka-") || !moving.insert(entry.name).second) return {};
    cluster.after(next, [this, name = entry.name] { cluster.delete_gracefully("pods", "shop", name); });
    next += 30s;
    return {};
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 150s + 10s);
  EXPECT_THAT(told.message_of("BudgetSyncFailed"),
              AllOf(HasSubstr("StrimziPodSet kafka may move its pods itself"), Not(HasSubstr("or delete"))));
  for (const auto& entry : told.entries)
    if (entry.type == EventType::vanished && entry.pod.starts_with("shop/free"))
      EXPECT_LT(entry.at - report.started_at, 8s) << "they hold up no other";
}

TEST_F(Signals, S80_AWebhookTurnsTheEvictionIntoADryRun) {
  options.settle = 0s;
  add_pods(2);
  webhook([this](const sim::AuditEntry& entry) -> sim::Admission {
    if (moving.insert(entry.name).second)
      cluster.after(20s, [this, name = entry.name] { cluster.remove("pods", "shop", name); });
    return {.as_dry_run = true};
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evictions(), SizeIs(2));
  EXPECT_LT(took(), 21s);
}

TEST_F(Signals, P10_AClosedBudgetIsAskedOncePerPodAndThenSeldom) {
  add_pods(20, {.labels = {{"app", "web"}}});
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  options.timeout = 20min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  for (int i = 0; i < 20; ++i) EXPECT_GE(evictions_of("web-" + std::to_string(i)), 1u);
  EXPECT_LE(evictions().size(), 20u + 2u * 20u);
  EXPECT_GE(evictions().size(), 20u + 20u);
  const auto sent = evictions();
  for (std::size_t i = 1; i < sent.size(); ++i) EXPECT_GE(sent[i].time, sent[i - 1].answered) << "one at a time";
  EXPECT_EQ(told.count(EventType::parked), 20u) << "each is told once";
}

// The signal of one pod hangs in a webhook for ten seconds. The eviction that the budget allows for the other pod does
// not wait for it.
TEST_F(Signals, ABudgetThatOpensIsAskedAtOnceWhileASignalHangs) {
  no_latency();
  add_pods(2, {.labels = {{"app", "web"}}});
  add(a_budget("web", {{"minAvailable", 2}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  webhook([](const sim::AuditEntry& entry) -> sim::Admission { return {.takes = entry.name == "web-0" ? 10s : 0s}; });
  after(3s, [this] { cluster.patch("poddisruptionbudgets", "shop", "web", {{"spec", {{"minAvailable", 1}}}}); });
  std::optional<WallTime> opened;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "poddisruptionbudgets" || !change.object) return;
    if (!opened && sim::number(*change.object, "/status/disruptionsAllowed") > 0) opened = clock.wall_now();
  });
  after(60s, [this] { cluster.remove("poddisruptionbudgets", "shop", "web"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  ASSERT_TRUE(opened);
  EXPECT_EQ(sent_at("web-1") - *opened, 0ms);
}

TEST_F(Signals, P9_ASlowWebhookOfOneNamespaceHoldsUpNoOther) {
  options.max_concurrent = 0;
  add_pods(60, {.ns = "bank", .grace = 1});
  add(a_pod("quick", {.grace = 1}));
  webhook([](const sim::AuditEntry& entry) -> sim::Admission { return {.takes = entry.ns == "bank" ? 2s : 0s}; });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(sent_at("quick") - report.started_at, 1s);
  EXPECT_LT(took(), 10s) << "ten at a time would take thirteen seconds";
}

// The server waits ten seconds for a webhook that does not answer, or up to 30 s by configuration. The drain waits
// longer than that for the answer to an eviction.
TEST_F(Signals, AnEvictionWaitsForItsAnswerLongerThanTheServerForAWebhook) {
  add_pods(3);
  webhook([](const sim::AuditEntry&) -> sim::Admission { return {.takes = 30s}; });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evictions(), SizeIs(3));
}

TEST_F(Signals, P10_AWebhookThatIsDownIsAskedAboutOnePodInTurn) {
  options.max_concurrent = 0;
  options.timeout = 1h;
  add_pods(100);
  bool down = true;
  webhook([&](const sim::AuditEntry&) -> sim::Admission {
    if (down) return {.refusal = cannot_be_called()};
    return {};
  });
  after(30min, [&] { down = false; });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(evictions().size(), 100u + 100u + 10u + 30u * 4u);
  EXPECT_LT(took(), 30min + 60s);
}

TEST_F(Signals, P4_ASignalThatIsAcceptedIsAnEvictionLikeAnyOther) {
  no_latency();
  options.max_concurrent = 1;
  add_pods(1, {.grace = 5, .labels = {{"app", "web"}}});
  add(a_budget("web", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  webhook([](const sim::AuditEntry&) -> sim::Admission { return {.takes = 5s}; });
  after(2s, [this] { cluster.patch("poddisruptionbudgets", "shop", "web", {{"spec", {{"minAvailable", 0}}}}); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::evicted);
  EXPECT_THAT(evictions(), SizeIs(1));
}

}  // namespace
}  // namespace haulout::scenario
