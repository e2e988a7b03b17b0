// A machine goes down only after the volumes of its pods are detached.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using scenario::a_volume;
using scenario::mounting;

struct FleetVolumes : Fleet {
  // A database on n1 whose volume takes this long to be unmounted and detached.
  void database(const char* detaching, const char* unmounting = "0s") {
    add(a_volume("data",
                 {{"sim.haulout.dev/detaches-after", detaching}, {"sim.haulout.dev/unmounts-after", unmounting}}));
    PodSpec db;
    db.spec = mounting({"data"});
    add(a_pod("db-0", db));
    cluster.on_change([this](const sim::Change& change) {
      const bool boots =
          change.key.resource == "nodes" && change.before && change.object &&
          sim::text(*change.before, "/status/nodeInfo/bootID") != sim::text(*change.object, "/status/nodeInfo/bootID");
      if (boots && attached()) booted_with_a_volume = true;
    });
  }
  bool attached() const { return !cluster.all("volumeattachments").empty(); }

  bool booted_with_a_volume = false;
};

TEST_F(FleetVolumes, NoRebootBeforeTheVolumeIsDetached) {
  Machine& n1 = machine("n1");
  database("20m");
  after(1min, [&] { EXPECT_EQ(label("n1", "haulout.dev/reason"), "DetachingVolumes") << story(); });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "VolumeStuck") << "longer than --volume-limit";
    EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"),
                ::testing::AllOf(::testing::StartsWith("PersistentVolume pv-data: it is still attached"),
                                 ::testing::HasSubstr("kubectl describe volumeattachment")));
    EXPECT_TRUE(attached());
    EXPECT_FALSE(n1.shows_ready());
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_FALSE(booted_with_a_volume);
  EXPECT_FALSE(attached());
}

// The next agent finds no pods any more. Only the volume is left, and it waits until the volume is detached.
TEST_F(FleetVolumes, AnAgentThatIsKilledMeanwhileDoesNotForget) {
  Machine& n1 = machine("n1");
  database("20m");
  after(5min, [&] { n1.kill_agent(); });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "VolumeStuck");
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_FALSE(booted_with_a_volume);
}

// A volume that was attached without a pod before the drain is still known as such after a restart.
TEST_F(FleetVolumes, ALeakedVolumeHoldsNoDrainUpThatGoesOnAfterARestart) {
  Machine& n1 = machine("n1");
  add(a_volume("old"));
  add(scenario::a_volume_attachment("pv-old"));
  database("5m");
  after(3min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    n1.kill_agent();
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_TRUE(attached()) << "nobody deletes it but a human";
  EXPECT_THAT(agent::decode_record(sim::annotation(node("n1"), "haulout.dev/record")).leaked, ::testing::IsEmpty());
}

// When the drain begins, no pod uses an attached volume. Pods that used it may have been deleted before the agent could
// see them. So the drain waits 15 s for this volume when nothing else is left.
TEST_F(FleetVolumes, AVolumeOfWhichNobodyKnowsYetWhoseItIsIsWhatItWaitsFor) {
  Machine& n1 = machine("n1");
  add(a_volume("old"));
  add(scenario::a_volume_attachment("pv-old"));
  PodSpec short_lived;
  short_lived.grace = 2;
  add(a_pod("web-0", short_lived));
  std::set<std::string> reasons;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "nodes" && state("n1") == "draining") reasons.insert(label("n1", "haulout.dev/reason"));
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_THAT(reasons, ::testing::Contains("DetachingVolumes")) << story();
}

TEST_F(FleetVolumes, AStuckVolumeGivesTheTurnBackWhenItIsToldTo) {
  options.drain.end_at_volume_limit = true;
  Machine& n1 = machine("n1");
  database("24h");
  after(4min, [&] {
    EXPECT_EQ(n1.boots(), 0u) << story();
    EXPECT_EQ(state("n1"), "pending");
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
  });
  run_for(4min + 30s);
  EXPECT_FALSE(booted_with_a_volume);
}

// The first attempt ends at the volume limit. The next attempt is a run of its own, and finds a volume that no pod
// uses, but that is still mounted. So it does not count as leaked, and the node is not rebooted.
TEST_F(FleetVolumes, TheNextAttemptDoesNotTakeAVolumeThatIsStillMountedForNobodys) {
  options.drain.end_at_volume_limit = true;
  Machine& n1 = machine("n1");
  database("2s", "24h");
  run_for(30min);
  EXPECT_EQ(n1.boots(), 0u) << story();
  EXPECT_FALSE(booted_with_a_volume);
}

TEST_F(FleetVolumes, TheNextAttemptDoesNotTakeAVolumeWithoutItsControllerForNobodys) {
  options.drain.end_at_volume_limit = true;
  Machine& n1 = machine("n1");
  database("2s");
  after(5s, [&] { cluster.switches().attach_detach = false; });
  after(30min, [&] {
    EXPECT_EQ(n1.boots(), 0u) << story();
    cluster.switches().attach_detach = true;
  });
  run_fleet(2h);
  expect_updated(n1);
  EXPECT_FALSE(booted_with_a_volume);
}

// `VolumeWait::required` stands for an agent that could list VolumeAttachments when it started. While it lacks that
// right, the drain fails and is tried again, and nothing is evicted or rebooted.
TEST_F(FleetVolumes, ARightThatIsLostLaterLetsNoVolumeGo) {
  options.drain.volumes = drain::VolumeWait::required;
  Machine& n1 = machine("n1");
  database("10m");
  cluster.forbid("list", "volumeattachments");
  after(20min, [&] {
    EXPECT_EQ(n1.boots(), 0u) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff") << story();
    EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"), ::testing::HasSubstr("volumes of node n1"));
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_FALSE(cluster.get("pods", "shop", "db-0").is_null());
    cluster.permit("list", "volumeattachments");
  });
  run_fleet(3h);
  expect_updated(n1);
  EXPECT_FALSE(booted_with_a_volume);
}

}  // namespace
}  // namespace haulout::fleet
