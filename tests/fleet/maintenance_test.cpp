// The condition HauloutMaintenance: True from the cordon until the agent takes the cordon back.
#include "k8s/codec.hpp"
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Not;

struct Maintenance : GatedFleet {
  Maintenance() {
    way = [this] { return &faults; };
  }
  WallTime heard() const {
    const auto decoded = k8s::decode<k8s::Node>(node("n1").dump());
    for (const k8s::NodeCondition& condition : decoded->conditions)
      if (condition.last_heartbeat) return *condition.last_heartbeat;
    return {};
  }
  std::string condition() const { return sim::text(sim::condition(node("n1"), "HauloutMaintenance"), "/status"); }
  void expect_degraded_in_service(const std::string& reason) {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), reason);
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(condition(), "False") << story();
  }
  void refuse_status(TimePoint from, TimePoint until) {
    faults.add({.verb = "patch",
                .resource = "nodes/status",
                .from = from,
                .until = until,
                .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  }
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
};

TEST_F(Maintenance, EndsForANodeThatIsDegradedAndTakesPods) {
  machine("n1", {.ignored_reboots = 100});
  run_fleet();
  expect_degraded_in_service("RebootFailed");
}

TEST_F(Maintenance, IsNotThatOfANodeThatWasNeverCordonedForIt) {
  machine("n1", {.still_wanted = true});
  after(2h, [&] { expect_degraded_in_service("RebootLoop"); });
  run_for(2h);
}

TEST_F(Maintenance, GoesOnForANodeThatIsDegradedAndCordoned) {
  machine("n1", {.rolls_back = true});
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_TRUE(unschedulable("n1"));
  EXPECT_EQ(condition(), "True");
}

// One failed write must not leave the condition True for weeks.
TEST_F(Maintenance, IsTakenBackThoughItCouldNotBeWrittenAtThatMoment) {
  Machine& n1 = machine("n1");
  n1.on_ready = [&] { refuse_status(clock.now(), clock.now() + 30min); };
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(condition(), "True");
  });
  after(42min, [&] { EXPECT_EQ(condition(), "False") << story(); });
  run_for(42min);
}

// P10: an agent that is never allowed to write the condition does not try all the time.
TEST_F(Maintenance, ThatCanNeverBeWrittenIsTriedAgainNowAndThen) {
  Machine& n1 = machine("n1");
  n1.on_ready = [&] { refuse_status(clock.now(), TimePoint::max()); };
  std::size_t before = 0;
  after(1h, [&] { before = n1.requests(); });
  after(3h, [&] { EXPECT_LE(n1.requests() - before, 60u) << story(); });
  run_for(3h);
  EXPECT_EQ(condition(), "True");
}

// The heartbeat shows people whether a drain takes long or its agent is dead.
TEST_F(Maintenance, AnAgentInMaintenanceIsHeardOfNowAndThen) {
  machine("n1", {.methods = {}});
  for (const Duration when : {20min, 60min, 180min})
    after(when, [&] {
      EXPECT_EQ(state("n1"), "ready") << story();
      EXPECT_GE(heard(), clock.wall_now() - 6min);
    });
  std::size_t before = 0;
  after(1h, [&] { before = machines[0]->requests(); });
  after(2h, [&] {
    EXPECT_LE(machines[0]->requests() - before, 240u)
        << "heard, not noisy: each news of the Node is a reason to prove that it is ready";
  });
  after(3h + 1s, [&] {
    machines[0]->plan().agent_starts = 24h;
    machines[0]->kill_agent();
  });
  after(4h, [&] { EXPECT_LT(heard(), clock.wall_now() - 50min) << "the silence of the dead"; });
  run_for(4h + 1min);
}

// The agent that was killed has already written everything except the heartbeat.
TEST_F(Maintenance, AnAgentThatIsStartedAgainInMaintenanceIsHeardOf) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.kill_agent();
  });
  after(1h, [&] { EXPECT_GE(heard(), clock.wall_now() - 6min); });
  run_for(61min);
}

}  // namespace
}  // namespace haulout::fleet
