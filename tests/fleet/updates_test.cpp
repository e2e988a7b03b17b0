// A fleet that takes itself through an update.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Updates : Fleet {};

TEST_F(Updates, ThreeNodesOneAfterTheOther) {
  for (const char* name : {"n1", "n2", "n3"}) machine(name);
  add(a_workload("Deployment", "web", 6, {{"terminationGracePeriodSeconds", 5}}));
  add(a_budget("web", {{"minAvailable", 4}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  run_fleet();
  for (const auto& each : machines) {
    expect_updated(*each);
    EXPECT_EQ(each->boots(), 1u) << story();
    EXPECT_THAT(states_of(each->node()), ElementsAre("idle", "pending", "waiting", "draining", "ready", "rebooting",
                                                     "verifying", "uncordoning", "soaking", "idle"))
        << story();
  }
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Updates, AFleetThatNeedsNothingIsLeftAlone) {
  for (const char* name : {"n1", "n2"}) machine(name, {.target = ""});
  run_fleet();
  for (const auto& each : machines) {
    EXPECT_EQ(each->boots(), 0u);
    EXPECT_EQ(state(each->node()), "idle");
    EXPECT_THAT(states_of(each->node()), ElementsAre("idle"));
  }
}

// Unknown never counts as a need.
TEST_F(Updates, ABackEndThatCannotTellRebootsNothing) {
  machine("n1", {.unknown = true});
  run_fleet(1h);
  EXPECT_EQ(machines[0]->boots(), 0u);
  EXPECT_EQ(state("n1"), "unknown");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown");
  EXPECT_THAT(node("n1")["metadata"]["annotations"]["haulout.dev/message"], HasSubstr("locked"));
}

}  // namespace
}  // namespace haulout::fleet
