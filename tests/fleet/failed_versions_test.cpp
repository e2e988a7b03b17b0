// A version that has failed on one node is installed on no other node of its pool (--update).
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct FailedVersions : GatedFleet {
  FailedVersions() {
    joined.installs = true;
    checks.remembers_versions = true;
    limit = 3;
  }

  // Adds a machine whose updates are images. No image is offered yet.
  Machine& images(const std::string& name, bool before_drain = false) {
    MachinePlan plan{.target = ""};
    plan.updates.on = true;
    plan.updates.before_drain = before_drain;
    return machine(name, plan);
  }
  static void offer(Machine& machine, const std::string& version) {
    machine.plan().updates.image = version;
    machine.plan().updates.waiting = {machine.version() + " to " + version};
    machine.updates().add({});
  }
  // Ends the fault and the need for a reboot: the machine keeps its old version, and no image waits for the next boot.
  static void forget(Machine& machine) {
    machine.plan().rolls_back = false;
    machine.want("");
  }
  // Adds n1, which is offered version 2.0 after a minute and rolls it back, and n2, which is offered it after an hour.
  std::pair<Machine&, Machine&> one_after_the_other() {
    Machine& n1 = images("n1");
    Machine& n2 = images("n2");
    n1.plan().rolls_back = true;
    after(1min, [&] { offer(n1, "2.0"); });
    after(1h, [&] { offer(n2, "2.0"); });
    return {n1, n2};
  }
  std::string reason(const std::string& name) const { return label(name, "haulout.dev/reason"); }
  std::string message(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/message"); }
  std::string failed_label(const std::string& name) const { return label(name, "haulout.dev/failed-version"); }
  agent::Record record(const std::string& name) const {
    return agent::decode_record(sim::annotation(node(name), "haulout.dev/record"));
  }
  void annotate(const std::string& name, const std::string& key, const Json& value) {
    cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{key, value}}}}}});
  }
  void expect_held_back(const Machine& machine, const std::string& version) {
    EXPECT_EQ(state(machine.node()), "pending") << story();
    EXPECT_EQ(reason(machine.node()), "VersionFailed");
    EXPECT_THAT(message(machine.node()), HasSubstr("version " + version + " has failed on node n1"));
    EXPECT_FALSE(unschedulable(machine.node()));
    EXPECT_EQ(machine.updates().installations(), 0u);
    EXPECT_THAT(states_of(machine.node()), Not(Contains("draining")));
  }

  void roll_back_on_one(bool before_drain) {
    Machine& n1 = images("n1", before_drain);
    Machine& n2 = images("n2", before_drain);
    Machine& n3 = images("n3", before_drain);
    n1.plan().rolls_back = true;
    after(1min, [&] { offer(n1, "2.0"); });
    after(1h, [&] {
      EXPECT_EQ(state("n1"), "degraded") << story();
      EXPECT_THAT(record("n1").failed_versions, ElementsAre("2.0"));
      EXPECT_EQ(failed_label("n1"), "2.0");
      offer(n2, "2.0");
      offer(n3, "2.0");
    });
    after(3h, [&] {
      expect_held_back(n2, "2.0");
      expect_held_back(n3, "2.0");
      offer(n2, "3.0");
      offer(n3, "3.0");
    });
    run_fleet();
    EXPECT_EQ(n1.version(), "1.0") << story();
    EXPECT_EQ(n2.version(), "3.0") << story();
    EXPECT_EQ(n3.version(), "3.0") << story();
    EXPECT_EQ(n2.boots() + n3.boots(), 2u);
  }

  void install_the_pinned_one(bool before_drain) {
    joined.pin = "2.0";
    Machine& n1 = images("n1", before_drain);
    Machine& n2 = images("n2", before_drain);
    n2.want("3.0");  // another program has installed this version for the next boot
    after(1min, [&] { offer(n1, "3.0"); });
    after(2h, [&] {
      for (const auto& each : machines) {
        EXPECT_EQ(state(each->node()), "pending") << story();
        EXPECT_EQ(reason(each->node()), "VersionPinned");
        EXPECT_THAT(message(each->node()), HasSubstr("version 3.0 waits, but pin allows only 2.0"));
        EXPECT_EQ(each->updates().installations(), 0u);
        offer(*each, "2.0");
      }
    });
    run_fleet();
    for (const auto& each : machines) {
      EXPECT_EQ(each->version(), "2.0") << story();
      EXPECT_EQ(each->boots(), 1u);
      EXPECT_EQ(state(each->node()), "idle");
    }
  }
};

TEST_F(FailedVersions, ARolledBackVersionIsInstalledNowhereElseAndTheNextOneIs) {
  roll_back_on_one(false);
}

TEST_F(FailedVersions, AnImageOfARolledBackVersionIsWrittenNowhereElse) {
  roll_back_on_one(true);
}

// A node that drains for a version gives up the drain when the version fails on another node, and does not install it.
TEST_F(FailedVersions, ANodeThatDrainsForItGivesUp) {
  Machine& n1 = images("n1");
  Machine& n2 = images("n2");
  n1.plan().rolls_back = true;
  PodSpec held;
  held.node = "n2";
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  after(10s, [&] {
    offer(n1, "2.0");
    offer(n2, "2.0");
  });
  after(2min, [&] { EXPECT_EQ(state("n2"), "draining") << story(); });
  after(1h, [&] {
    EXPECT_EQ(state("n2"), "pending") << story();
    EXPECT_EQ(reason("n2"), "VersionFailed");
    EXPECT_FALSE(unschedulable("n2"));
    release_pod();
  });
  run_for(3h);
  EXPECT_EQ(n2.updates().installations(), 0u) << story();
  EXPECT_EQ(n2.boots(), 0u);
}

// n2 begins to write the image before the version has failed on n1. After the failure, n2 does not reboot into it.
TEST_F(FailedVersions, AnImageThatIsInPlaceIsNotBooted) {
  Machine& n1 = images("n1", true);
  Machine& n2 = images("n2", true);
  n1.plan().rolls_back = true;
  limit = 1;
  n2.plan().updates.takes = 1min;
  after(10s, [&] { offer(n1, "2.0"); });
  after(3min, [&] { offer(n2, "2.0"); });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(n2.boots(), 0u);
    limit = 3;
  });
  after(3h, [&] {
    EXPECT_EQ(reason("n2"), "VersionFailed") << story();
    EXPECT_EQ(n2.version(), "1.0");
    offer(n2, "3.0");
  });
  run_for(5h);
  EXPECT_EQ(n2.version(), "3.0") << story();
  EXPECT_EQ(n2.boots(), 1u);
}

TEST_F(FailedVersions, AnInstallationThatAlwaysFailsCountsAndARepairedNodeLetsTheOthersGoOn) {
  Machine& n1 = images("n1", true);
  Machine& n2 = images("n2", true);
  n1.plan().updates.failing = 3;
  after(1min, [&] { offer(n1, "2.0"); });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason("n1"), "UpdateFailed");
    offer(n2, "2.0");
  });
  after(3h, [&] {
    expect_held_back(n2, "2.0");
    annotate("n1", "haulout.dev/request", "reboot");
  });
  run_fleet();
  EXPECT_EQ(n1.version(), "2.0") << story();
  EXPECT_EQ(n2.version(), "2.0") << story();
  EXPECT_THAT(record("n1").failed_versions, IsEmpty());
  EXPECT_EQ(failed_label("n1"), "");
}

// A failed version stays in the record when its node leaves the state degraded with the old version. The other nodes
// still do not install it.
TEST_F(FailedVersions, ItStaysRememberedWhenTheNodeRunsItsOldVersionAgain) {
  Machine& n1 = images("n1");
  Machine& n2 = images("n2");
  n1.plan().rolls_back = true;
  after(1min, [&] { offer(n1, "2.0"); });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    forget(n1);
    annotate("n1", "haulout.dev/request", "reboot");
  });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(failed_label("n1"), "2.0");
    offer(n2, "2.0");
  });
  after(4h, [&] {
    expect_held_back(n2, "2.0");
    // The remedy that the message names: remove the record.
    EXPECT_THAT(message("n2"), HasSubstr("kubectl annotate node n1 haulout.dev/record-"));
    annotate("n1", "haulout.dev/record", nullptr);
  });
  run_fleet(8h);
  EXPECT_EQ(failed_label("n1"), "");
  EXPECT_EQ(n2.version(), "2.0") << story();
}

TEST_F(FailedVersions, ADegradedNodeWhoseRecordIsRemovedHoldsNobodyBack) {
  const auto [n1, n2] = one_after_the_other();
  after(2h, [&] {
    expect_held_back(n2, "2.0");
    forget(n1);
    offer(n1, "2.0");
    annotate("n1", "haulout.dev/record", nullptr);
  });
  run_fleet();
  for (const Machine* each : {&n1, &n2}) {
    EXPECT_EQ(each->version(), "2.0") << story();
    EXPECT_EQ(state(each->node()), "idle");
  }
}

TEST_F(FailedVersions, WithItsNodeTheMemoryGoes) {
  const auto [n1, n2] = one_after_the_other();
  after(2h, [&] {
    expect_held_back(n2, "2.0");
    forget(n1);
    n1.replace();
  });
  run_fleet();
  EXPECT_EQ(n2.version(), "2.0") << story();
}

// P7: an agent that starts after a crash reads from the Nodes which versions have failed.
TEST_F(FailedVersions, AnAgentThatStartsAnewStillKnows) {
  const auto [n1, n2] = one_after_the_other();
  for (int i = 0; i < 5; ++i) after(2h + i * 1min, [&] { n2.kill_agent(); });
  after(2h + 30s, [&] { n1.kill_agent(); });
  run_for(4h);
  expect_held_back(n2, "2.0");
}

TEST_F(FailedVersions, AnotherPoolIsNotHeldBack) {
  const auto [n1, n2] = one_after_the_other();
  checks.pools = {{"n2", "other"}};
  joined.own_pool = [](const k8s::Node& node) { return agent::OwnPool{node.name == "n1" ? "default" : "other"}; };
  run_fleet();
  EXPECT_EQ(n2.version(), "2.0") << story();
}

// Agents that do not install updates (no --update) write no failed versions to their Nodes.
TEST_F(FailedVersions, AnAgentThatInstallsNothingRemembersNothing) {
  joined.installs = false;
  machine("n1", {.rolls_back = true});
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(failed_label("n1"), "");
  EXPECT_THAT(record("n1").failed_versions, IsEmpty());
}

// With --pin, the agents neither install nor boot another version. When the pinned version is offered later, they
// install it.
TEST_F(FailedVersions, OnlyThePinnedVersionIsInstalled) {
  install_the_pinned_one(false);
}

TEST_F(FailedVersions, OnlyTheImageOfThePinnedVersionIsWritten) {
  install_the_pinned_one(true);
}

// P8: --halt-after is 2, and three nodes fail at once. A person repairs one after the other. If the failed nodes held
// each other back at the gate "fleet", none of them could try again, and nothing would end the halt.
TEST_F(GatedFleet, AHaltWithMoreFailuresThanTheNumberCanBeEnded) {
  limit = 4;
  slots.halt_after = checks.halt_after = joined.halt_after = 2;
  options.ramp = true;
  for (const char* name : {"n1", "n2", "n3", "n4"}) machine(name, {.target = ""});
  for (std::size_t i : {0u, 1u, 2u}) machines[i]->plan().rolls_back = true;
  after(1min, [&] {
    for (std::size_t i : {0u, 1u, 2u}) machines[i]->want("1.1");
  });
  const auto repair = [this](std::size_t i) {
    machines[i]->repair();
    cluster.patch("nodes", "", machines[i]->node(),
                  {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  };
  after(1h, [&] {
    for (const char* name : {"n1", "n2", "n3"}) EXPECT_EQ(state(name), "degraded") << story();
    machines[3]->want("1.1");
    repair(0);
  });
  after(2h, [&] {
    expect_updated(*machines[0]);
    EXPECT_EQ(label("n4", "haulout.dev/reason"), "UpdateFailedElsewhere") << story();
    EXPECT_EQ(machines[3]->boots(), 0u);
    repair(1);
  });
  run_fleet();
  for (std::size_t i : {0u, 1u, 3u}) expect_updated(*machines[i]);
  EXPECT_EQ(state("n3"), "degraded");
}

}  // namespace
}  // namespace haulout::fleet
