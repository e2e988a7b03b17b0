// In a large cluster, agents wait for a random time before they ask their gates. The time at the start is
// 2026-01-01T00:00:00Z.
#include <fmt/format.h>

#include "tests/fleet/gated_fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using agent::Gate;
using agent::GateAnswer;
using agent::GateQuestion;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

TEST(SpreadOf, GrowsWithTheCluster) {
  EXPECT_EQ(agent::spread_of(0), 0s) << "the number of Nodes is not known";
  EXPECT_EQ(agent::spread_of(49), 0s);
  EXPECT_EQ(agent::spread_of(50), 750ms);
  EXPECT_EQ(agent::spread_of(200), 3s);
  EXPECT_EQ(agent::spread_of(2000), 30s);
  EXPECT_EQ(agent::spread_of(5000), 30s);
}

struct SpreadFleet : GatedFleet {
  SpreadFleet() { options.spread = 30s; }

  // All gates are closed before `opens`. Stores in `asked` when each node has asked for the first time since then.
  void open_at(TimePoint opens) {
    gates = [this, opens](k8s::Client&, const std::string&) {
      return std::make_unique<ScriptedGates>(clock, [this, opens](const GateQuestion& question) {
        if (clock.now() < opens)
          return GateAnswer{
              {{.name = "window",
                .verdict = Gate::Verdict::closed,
                .reason = "OutsideWindow",
                .message = "opens soon",
                .look_again = clock.wall_now() + std::chrono::duration_cast<WallTime::duration>(opens - clock.now())}}};
        asked.emplace(question.node.name, clock.now() - opens);
        return GateAnswer{};
      });
    };
  }
  void twenty_machines() {
    for (int i = 0; i < 20; ++i) machine(fmt::format("n{}", i), {.down = 1min});
  }
  // Returns how many nodes asked in the second in which most nodes did.
  std::size_t most_in_a_second() const {
    std::map<std::int64_t, std::size_t> seconds;
    for (const auto& [name, when] : asked) ++seconds[when / 1s];
    std::size_t most = 0;
    for (const auto& [second, nodes] : seconds) most = std::max(most, nodes);
    return most;
  }
  std::vector<Duration> times() const {
    std::vector<Duration> times;
    for (const auto& [name, when] : asked) times.push_back(when);
    return times;
  }
  std::string reason(const std::string& name) const { return label(name, "haulout.dev/reason"); }

  std::map<std::string, Duration> asked;
};

TEST_F(SpreadFleet, AgentsOfALargeClusterAskOneAfterTheOther) {
  open_at(clock.now());
  twenty_machines();
  run_fleet(12h);
  EXPECT_THAT(asked, SizeIs(20));
  EXPECT_LE(most_in_a_second(), 5u);
  EXPECT_THAT(times(), Each(Lt(32s))) << "an agent starts within two seconds";
  for (const auto& each : machines) expect_updated(*each);
}

TEST_F(SpreadFleet, AWindowThatOpensDoesNotWakeAllAtOnce) {
  open_at(clock.now() + 30min);
  twenty_machines();
  run_fleet(12h);
  EXPECT_THAT(asked, SizeIs(20));
  EXPECT_LE(most_in_a_second(), 5u);
  EXPECT_THAT(times(), Each(Ge(0s)));
  EXPECT_THAT(times(), Each(Lt(31s))) << "the window is not missed";
}

TEST_F(SpreadFleet, TheNodeSaysWhyItDoesNotBegin) {
  options.spread = 10min;
  open_at(clock.now());
  Machine& n1 = machine("n1");
  after(5s, [&] {
    ASSERT_TRUE(asked.empty()) << "the agent has drawn a long time";
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(reason("n1"), "RandomizedDelay");
    EXPECT_THAT(message(), HasSubstr("the agent begins within 10m00s"));
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(reason("n1"), "");
}

TEST_F(SpreadFleet, ARebootThatAPersonRequestsDoesNotWait) {
  options.spread = 10h;
  open_at(clock.now());
  Machine& n1 = machine("n1");
  after(1min, [&] {
    ASSERT_TRUE(asked.empty()) << "the agent has drawn a long time";
    request();
  });
  after(1min + 10s, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet();
  expect_updated(n1);
}

// P8: the reason of the closed gate appears also when the agent has waited.
TEST_F(SpreadFleet, AClosedGateIsShownAfterTheWait) {
  open_at(clock.now() + 1h);
  Machine& n1 = machine("n1");
  after(1min, [&] { EXPECT_EQ(reason("n1"), "OutsideWindow") << story(); });
  run_fleet();
  expect_updated(n1);
}

TEST_F(SpreadFleet, ANeedThatHasGoneMeanwhileBeginsNothing) {
  options.spread = 10min;
  open_at(clock.now());
  Machine& n1 = machine("n1");
  after(5s, [&] {
    ASSERT_TRUE(asked.empty()) << "the agent has drawn a long time";
    n1.want("");
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_THAT(states_of("n1"), Not(Contains("waiting")));
}

}  // namespace
}  // namespace haulout::fleet
