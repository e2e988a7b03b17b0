// The annotations by which an agent asks autoscalers to leave its node alone during the update. Nothing of the update
// depends on them.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* scale_down = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
constexpr const char* karpenter = "karpenter.sh/do-not-disrupt";
constexpr const char* held = "haulout.dev/held-autoscalers";
const std::string both = std::string(scale_down) + "," + karpenter;

// Answers no request that names these annotations, until its deadline.
class SilentAboutAutoscalers final : public http::Transport {
 public:
  SilentAboutAutoscalers(http::Transport& inner, Clock& clock) : inner_(inner), clock_(clock) {}
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    if (request.body.find("scale-down-disabled") == std::string::npos)
      co_return co_await inner_.round_trip(std::move(request), deadline);
    ++asked;
    co_await clock_.sleep_until(deadline);
    co_return Error(Errc::timeout, "no answer before the deadline");
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    return inner_.open(std::move(request), deadline);
  }
  std::size_t asked = 0;

 private:
  http::Transport& inner_;
  Clock& clock_;
};

struct Autoscalers : Fleet {
  std::string annotation(const char* key) const { return sim::annotation(node("n1"), key); }
  void annotate(const std::string& key, Json value) {
    checks.by_a_person(
        [&] { cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{key, std::move(value)}}}}}}); });
  }
  void web() { add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}})); }
  // An admission policy or a webhook denies every change of these annotations.
  void deny(int code, bool* denies = nullptr) {
    cluster.server().intercept(
        [code, denies](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
          if ((denies && !*denies) || call.request.body.find("scale-down-disabled") == std::string::npos)
            return std::nullopt;
          sim::StatusBody denied;
          denied.code = code;
          denied.message = "policy no-autoscalers denied it";
          return denied.response();
        });
  }
  std::size_t warnings() const {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("warns: AutoscalersNotHeld") != line.npos;
    }));
  }
  void expect_nothing_left() const {
    for (const char* key : {scale_down, karpenter, held}) EXPECT_EQ(annotation(key), "") << story();
  }
};

TEST_F(Autoscalers, AreHeldFromTheFirstEvictionUntilTheSlotIsReleased) {
  options.times.soak = 10min;
  Machine& n1 = machine("n1");
  web();
  std::string at_the_cordon;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "nodes" && at_the_cordon.empty() && unschedulable("n1"))
      at_the_cordon = annotation(held) + " " + annotation(scale_down) + " " + annotation(karpenter);
  });
  after(6min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(annotation(karpenter), "true");
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(at_the_cordon, both + " true true");
  expect_nothing_left();
  EXPECT_EQ(warnings(), 0u);
}

TEST_F(Autoscalers, AreNotAskedIfTheOptionIsOff) {
  options.hold_autoscalers = false;
  machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change&) { seen = seen || !annotation(karpenter).empty(); });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_FALSE(seen);
}

// If a policy refuses the annotations, the update goes on, and the agent warns once.
struct AutoscalersDenied : Autoscalers, ::testing::WithParamInterface<int> {};

TEST_P(AutoscalersDenied, BlockNothing) {
  options.times.soak = 1min;
  deny(GetParam());
  machine("n1");
  web();
  run_fleet(15min);
  expect_updated(*machines[0]);
  EXPECT_EQ(warnings(), 2u) << "one before the reboot, one by the next process\n" << story();
  EXPECT_THAT(story(), HasSubstr("no-autoscalers"));
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Codes, AutoscalersDenied, ::testing::Values(400, 403, 409, 422, 500, 503),
                         [](const auto& row) { return std::to_string(row.param); });

// One refusal, for example right after a reconnect, proves nothing.
TEST_F(Autoscalers, OneRefusalIsNotTold) {
  bool denies = true;
  deny(403, &denies);
  Machine& n1 = machine("n1");
  web();
  cluster.server().on_answer([&denies](const sim::AuditEntry& entry) {
    if (entry.status == 403) denies = false;
  });
  after(30s, [&] { EXPECT_EQ(annotation(held), both) << story(); });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(warnings(), 0u) << story();
}

// The policy comes in the middle of the update. What was set is removed when the policy permits it.
TEST_F(Autoscalers, WhatCannotBeRemovedIsRemovedLater) {
  bool denies = false;
  deny(422, &denies);
  Machine& n1 = machine("n1");
  after(30s, [&] {
    EXPECT_EQ(annotation(held), both) << story();
    denies = true;
  });
  after(40min, [&] {
    expect_updated(n1);
    EXPECT_EQ(slots_held(), 0u);
    EXPECT_EQ(annotation(held), both);
    EXPECT_EQ(warnings(), 1u) << story();
    denies = false;
  });
  run_for(55min);
  expect_nothing_left();
}

// Each request for the annotations takes until its deadline. That costs one such time, not one in each state.
TEST_F(Autoscalers, AServerThatDoesNotAnswerDelaysTheUpdateOnce) {
  SilentAboutAutoscalers silent(cluster.api(), clock);
  way = [&silent] { return &silent; };
  Machine& n1 = machine("n1");
  std::optional<Duration> updated;
  cluster.on_change([&](const sim::Change&) {
    if (!updated && n1.boots() > 0 && state("n1") == "idle") updated = elapsed();
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_GE(silent.asked, 1u);
  ASSERT_TRUE(updated);
  EXPECT_LE(*updated, 2min) << story();
}

// P5: a person removes an annotation during the hold. It is not set again, and if the person sets it later, it stays.
TEST_F(Autoscalers, P5_WhatAPersonRemovesIsNotSetAgainAndIsNotOursLater) {
  options.times.soak = 20min;
  machine("n1");
  after(5min, [&] {
    EXPECT_EQ(annotation(held), both) << story();
    annotate(karpenter, nullptr);
  });
  after(10min, [&] {
    EXPECT_EQ(annotation(karpenter), "") << story();
    EXPECT_EQ(annotation(held), scale_down);
    machines[0]->kill_agent();
  });
  after(15min, [&] {
    EXPECT_EQ(annotation(karpenter), "") << story();
    annotate(karpenter, "true");
  });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_EQ(annotation(karpenter), "true");
  EXPECT_EQ(annotation(scale_down), "");
  EXPECT_EQ(annotation(held), "");
}

TEST_F(Autoscalers, P5_WhatAPersonChangesStays) {
  options.times.soak = 10min;
  machine("n1");
  after(5min, [&] {
    EXPECT_EQ(annotation(held), both) << story();
    annotate(scale_down, "until-monday");
  });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_EQ(annotation(scale_down), "until-monday");
  EXPECT_EQ(annotation(karpenter), "");
  EXPECT_EQ(annotation(held), "");
}

TEST_F(Autoscalers, P5_WhatAPersonHadSetStays) {
  machine("n1");
  annotate(karpenter, "true");
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_EQ(annotation(karpenter), "true");
  EXPECT_EQ(annotation(scale_down), "");
  EXPECT_EQ(annotation(held), "");
}

// An earlier agent has set the annotations. Since then the option was switched off, or the record was lost.
TEST_F(Autoscalers, WhatAnEarlierAgentHasSetIsTakenBackAlsoWithTheOptionOff) {
  for (const bool on : {true, false}) {
    options.hold_autoscalers = on;
    const std::string name = on ? "n1" : "n2";
    machine(name, {.target = ""});
    cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{karpenter, "true"}, {held, karpenter}}}}}});
  }
  run_fleet(5min);
  for (const auto& each : machines)
    for (const char* key : {karpenter, held}) EXPECT_EQ(sim::annotation(node(each->node()), key), "") << story();
}

// A degraded node whose cordon was taken back is in service again. One that stays cordoned is not.
TEST_F(Autoscalers, ADegradedNodeIsHeldWhileItIsOutOfService) {
  limit = 2;
  machine("n1", {.ignored_reboots = 9});
  machine("n2", {.rolls_back = true});
  run_for(2h);
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_FALSE(unschedulable("n1"));
  expect_nothing_left();
  EXPECT_EQ(state("n2"), "degraded") << story();
  EXPECT_EQ(sim::annotation(node("n2"), held), both);
  EXPECT_EQ(sim::annotation(node("n2"), karpenter), "true");
}

// With the option switched off, a degraded node is not held either.
TEST_F(Autoscalers, ADegradedNodeIsGivenBackWithTheOptionOff) {
  options.hold_autoscalers = false;
  machine("n1", {.rolls_back = true});
  cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{karpenter, "true"}, {held, karpenter}}}}}});
  run_for(1h);
  EXPECT_EQ(state("n1"), "degraded") << story();
  expect_nothing_left();
}

}  // namespace
}  // namespace haulout::fleet
