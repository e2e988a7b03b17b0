// What makes an agent give up a drain, and what does not. The time at the start is 2026-01-01T00:00:00Z.
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Pauses : GatedFleet {};

TEST_F(Pauses, APauseOfTheNodeGivesItsDrainUp) {
  Machine& n1 = machine("n1");
  held_pod();
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    annotate("haulout.dev/pause", "; disk swap");
  });
  after(1min + 5s, [&] {
    expect_given_up("Paused");
    EXPECT_THAT(message(), HasSubstr("disk swap"));
  });
  after(30min, [&] {
    expect_given_up("Paused");
    release_pod();
    annotate("haulout.dev/pause", nullptr);
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Pauses, APauseOfTheClusterGivesEveryDrainUp) {
  limit = 2;
  Machine& n1 = machine("n1");
  Machine& n2 = machine("n2", {.target = ""});
  held_pod();
  after(1min, [&] { pause_cluster("freeze"); });
  after(1min + 5s, [&] {
    expect_given_up("Paused");
    n2.want("1.1");
  });
  after(20min, [&] {
    EXPECT_EQ(state("n2"), "pending") << story();
    release_pod();
    cluster.remove("configmaps", "haulout", "haulout");
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_EQ(n1.boots(), 1u);
}

// P7: a pause that a person sets while no agent runs ends the drain when the next agent starts.
TEST_F(Pauses, APauseThatCameWhileNoAgentRanGivesTheDrainUp) {
  Machine& n1 = machine("n1");
  held_pod();
  after(1min, [&] {
    n1.kill_agent();
    pause_cluster("freeze");
  });
  after(2min, [&] {
    expect_given_up("Paused");
    release_pod();
    cluster.remove("configmaps", "haulout", "haulout");
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Pauses, ADrainThatWasGivenUpIsNotBegunAgainAtOnce) {
  machine("n1");
  held_pod();
  after(1min, [&] { annotate("haulout.dev/pause", "; wait"); });
  after(1min + 10s, [&] { annotate("haulout.dev/pause", nullptr); });
  after(3min, [&] {
    expect_given_up("BackingOff");
    EXPECT_THAT(message(), HasSubstr("this node is paused: wait"));
    release_pod();
  });
  run_fleet();
  expect_updated(*machines[0]);
}

// Between the state `rebooting` and the reboot request, the agent does not watch the gates any more. So it asks them.
TEST_F(Pauses, APauseThatComesRightBeforeTheRebootIsSeen) {
  Machine& n1 = machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.name != "n1" || state("n1") != "rebooting") return;
    seen = true;
    cluster.after(0s, [&] { annotate("haulout.dev/pause", "; stop"); });
  });
  after(3min, [&] {
    EXPECT_TRUE(seen) << story();
    EXPECT_THAT(n1.asked, ::testing::IsEmpty());
    expect_given_up("Paused");
    annotate("haulout.dev/pause", nullptr);
  });
  run_fleet();
  expect_updated(n1);
}

// Another tool reboots nodes that are ready. A paused node must not be rebooted.
TEST_F(Pauses, APauseWithdrawsReady) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_TRUE(n1.shows_ready()) << story();
    pause_cluster("freeze");
  });
  after(5min + 5s, [&] {
    expect_given_up("Paused");
    EXPECT_FALSE(n1.shows_ready());
    cluster.remove("configmaps", "haulout", "haulout");
  });
  after(15min, [&] {
    EXPECT_TRUE(n1.shows_ready()) << story();
    n1.power_cycle();
  });
  run_fleet();
  expect_updated(n1);
}

// If the ConfigMap cannot be read, a running drain goes on: only a pause that the agent has read ends it. No new update
// begins meanwhile (PauseUnknown).
TEST_F(Pauses, AConfigMapThatCannotBeReadGivesNoDrainUp) {
  Machine& n1 = machine("n1");
  held_pod();
  after(1min, [&] {
    for (const char* verb : {"get", "list", "watch"}) cluster.forbid(verb, "configmaps");
    cluster.drop_connections();
  });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_THAT(states_of("n1"), ::testing::ElementsAre("idle", "pending", "waiting", "draining"));
    for (const char* verb : {"get", "list", "watch"}) cluster.permit(verb, "configmaps");
    release_pod();
  });
  run_fleet();
  expect_updated(n1);
}

// A drain that has begun in a window may end after it. It also continues under an alert.
TEST_F(Pauses, NeitherTheEndOfAWindowNorAnAlertGivesADrainUp) {
  joined.schedule = agent::schedule({"00:00+32m"});
  Machine& n1 = machine("n1");
  held_pod();
  after(30s, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    prometheus.fire({"DiskFull"});
  });
  after(40min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    release_pod();
  });
  run_fleet(2h);
  expect_updated(n1);
}

// One update whose first drain is ended by a pause. The agent is killed at `crash`. update() returns the number of
// requests.
class PausedDrain : public GatedFleet {
 public:
  void TestBody() override {}
  std::size_t update(CrashPoint crash) {
    Machine& n1 = machine("n1");
    n1.crash_at(crash);
    held_pod();
    after(40s, [&] { pause_cluster("freeze"); });
    after(2min, [&] {
      EXPECT_EQ(n1.boots(), 0u) << story();
      expect_given_up("Paused");
      release_pod();
      cluster.remove("configmaps", "haulout", "haulout");
    });
    run_fleet(2h);
    expect_updated(n1);
    EXPECT_EQ(n1.boots(), 1u) << story();
    EXPECT_EQ(slots_held(), 0u);
    return n1.requests();
  }
};

// P7: kills the agent at every ninth request of such an update.
TEST(P7_CrashOnlyPauses, KilledInADrainThatIsGivenUp) {
  constexpr std::size_t stride = 9;
  const std::size_t requests = PausedDrain().update({});
  EXPECT_GT(requests, 40u);
  for (std::size_t k = 1; k <= requests; k += stride)
    for (const bool after : {false, true}) {
      SCOPED_TRACE("killed " + std::string(after ? "after" : "at") + " request " + std::to_string(k));
      PausedDrain().update({k, after});
      if (::testing::Test::HasFailure()) return;
    }
}

// P10: a controller writes to the Node every few seconds. These watch events do not make the agent ask the gates again.
TEST_F(Pauses, ANodeThatIsWrittenAllTheTimeDoesNotAskItsGatesAllTheTime) {
  pause_cluster("freeze");
  Machine& n1 = machine("n1");
  std::size_t before = 0;
  for (int i = 0; i < 720; ++i) after(10min + i * 5s, [&, i] { annotate("noise", std::to_string(i)); });
  after(10min, [&] { before = n1.requests(); });
  after(70min, [&] {
    EXPECT_LE(n1.requests() - before, 60u) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "Paused");
    cluster.remove("configmaps", "haulout", "haulout");
  });
  after(70min + 2s, [&] { EXPECT_NE(state("n1"), "pending") << story(); });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Pauses, ThatOfTheNodeIsNoticedAmongWhatElseIsWrittenThere) {
  pause_cluster("freeze");
  Machine& n1 = machine("n1");
  after(10min, [&] { annotate("haulout.dev/pause", "; disk swap"); });
  after(10min + 1s, [&] {
    EXPECT_THAT(message(), HasSubstr("disk swap")) << story();
    annotate("haulout.dev/pause", nullptr);
    cluster.remove("configmaps", "haulout", "haulout");
  });
  run_fleet();
  expect_updated(n1);
}

}  // namespace
}  // namespace haulout::fleet
