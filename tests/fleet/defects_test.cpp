// Bugs that other agents of this kind have, or that this one once had: named tests that show that it does not.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Defects : Fleet {
  void web(int replicas) { add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 5}})); }
  void request_reboot(const std::string& name) {
    cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  }
};

// The kubelet registers its Node anew while the agent lives on, as on bare metal.
TEST_F(Defects, ANodeThatIsMadeAnewUnderALivingAgent) {
  Machine& n1 = machine("n1", {.target = ""});
  after(1min, [&] { checks.by_a_person([&] { cluster.replace_node("n1"); }); });
  after(2min, [&] { n1.want("1.1"); });
  run_fleet(1h);
  expect_updated(n1);
}

// It is a request for one reboot, not for one after the other: the node would be drained for nothing, for ever.
TEST_F(Defects, ARequestedRebootThatNeverHappensIsGivenUp) {
  Machine& n1 = machine("n1", {.target = "", .ignored_reboots = 99});
  machine("n2", {.target = ""});
  web(2);
  after(1min, [&] { request_reboot("n1"); });
  run_for(6h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd")) << story();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootFailed");
  EXPECT_FALSE(unschedulable("n1"));
}

TEST_F(Defects, ARequestedRebootThatFailedIsTriedAgainWhenItIsRequestedAgain) {
  Machine& n1 = machine("n1", {.target = "", .ignored_reboots = 2});
  after(1min, [&] { request_reboot("n1"); });
  after(1h, [&] { request_reboot("n1"); });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(state("n1"), "idle");
}

TEST_F(Defects, APersonMayHaveARolledBackUpdateTriedAgain) {
  Machine& n1 = machine("n1", {.rolls_back = true});
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n1.plan().rolls_back = false;
    request_reboot("n1");
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(slots_held(), 0u);
}

// Nothing was asked of the machine as long as nobody could prove that it is ready, so nothing has failed.
TEST_F(Defects, AnApiServerThatIsAwayForAnHourWhenTheRebootIsDue) {
  for (const Duration from : {0ms, 1ms, 3ms, 6ms, 10ms, 15ms, 20ms, 30ms}) {
    struct OneNode : Defects {
      void TestBody() override {}
      void go(const std::string& in, Duration from) {
        Machine& n1 = machine("n1");
        bool seen = false;
        cluster.on_change([&](const sim::Change& change) {
          if (seen || change.key.name != "n1" || state("n1") != in) return;
          seen = true;
          cluster.after(from, [&] { cluster.restart(1h); });
        });
        run_fleet();
        EXPECT_TRUE(seen);
        expect_updated(n1);
        EXPECT_EQ(n1.boots(), 1u);
        EXPECT_LE(n1.asked.size(), 1u) << story();
      }
    };
    for (const char* in : {"ready", "rebooting"}) OneNode().go(in, from);
    if (HasFailure()) return;
  }
}

// Somebody takes the record away while our cordon is in force: what the mark tells suffices to take it back.
TEST_F(Defects, ARecordThatSomebodyTookAway) {
  Machine& n1 = machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  after(1min, [&] {
    EXPECT_TRUE(unschedulable("n1"));
    n1.want("");
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/record", nullptr}}}}}});
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_FALSE(unschedulable("n1")) << story();
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Defects, ATurnThatNobodyCanReadAboutIsNotAskedForAllTheTime) {
  limit = 2;
  Machine& n1 = machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  std::size_t before = 0;
  after(1min, [&] {
    cluster.forbid("list", "leases");
    add({{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata",
          {{"name", "haulout-default-1"}, {"namespace", "haulout"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
         {"spec", {{"holderIdentity", "n9/n9-uid"}}}});
    before = n1.requests();
  });
  after(11min, [&] { EXPECT_LT(n1.requests() - before, 150u); });
  run_for(12min);
}

}  // namespace
}  // namespace haulout::fleet
