// The cordon over a bad wire: it stays known as our own, and is taken back.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
namespace {
using namespace std::chrono_literals;

class CordonScenario : public Scenario {
 protected:
  CordonScenario() {
    way = &faulty;
    options.timeout = 60s;
    add_pods(1, {.labels = {{"app", "web"}}});
    add(a_budget("closed", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  }
  void break_patches(sim::FaultKind kind, std::size_t count) {
    sim::FaultRule rule;
    rule.verb = "patch";
    rule.count = count;
    rule.fault.kind = kind;
    faulty.add(rule);
  }
  SeededRng fault_rng{3};
  sim::FaultTransport faulty{cluster.api(), clock, fault_rng};
};

TEST_F(CordonScenario, P5_ACordonThatGetsThroughLateIsOurs) {
  break_patches(sim::FaultKind::reset_before, 11);
  const auto report = drain();
  EXPECT_THAT(report, Ended(drain::Outcome::blocked));
  EXPECT_GT(*told.time_of(drain::EventType::cordoned, "") - report.started_at, 10s) << "no late cordon, no test";
  EXPECT_FALSE(unschedulable());
}

TEST_F(CordonScenario, P5_ACordonWhoseAnswerIsLostIsOurs) {
  break_patches(sim::FaultKind::reset_after, 1);
  const auto report = drain();
  EXPECT_THAT(report, Ended(drain::Outcome::blocked));
  EXPECT_FALSE(report.cordon.before);
  EXPECT_FALSE(unschedulable());
}

TEST_F(CordonScenario, P5_ACordonThatIsNeverAnsweredIsTakenBack) {
  break_patches(sim::FaultKind::stall, 1);
  options.timeout = 20s;
  EXPECT_THAT(drain(), Ended(drain::Outcome::blocked));
  EXPECT_FALSE(unschedulable());
}

TEST_F(CordonScenario, P5_TakingTheCordonBackIsTriedAgain) {
  sim::FaultRule rule;
  rule.verb = "patch";
  rule.skip = 1;
  rule.count = 2;
  rule.fault.kind = sim::FaultKind::reset_before;
  faulty.add(rule);
  EXPECT_THAT(drain(), Ended(drain::Outcome::blocked));
  EXPECT_FALSE(unschedulable());
}

TEST_F(CordonScenario, P4_ADeadlineBeforeTheCordonIsNoFailure) {
  break_patches(sim::FaultKind::reset_before, SIZE_MAX);
  options.timeout = 5s;
  EXPECT_THAT(drain(), Ended(drain::Outcome::blocked));
}

TEST_F(CordonScenario, P3_SettleStartsAnewAfterANewCordon) {
  way = nullptr;
  options.timeout.reset();
  options.settle = 20s;
  after(5s, [this] {
    cluster.remove("poddisruptionbudgets", "shop", "closed");
    cluster.uncordon("n1");
  });
  after(30s, [this] { cluster.cordon("n1"); });
  EXPECT_THAT(drain(), Ended(drain::Outcome::drained));
  EXPECT_GE(took(), 50s);
}

}  // namespace
}  // namespace haulout::scenario
