// A machine goes down only when the volumes of its pods are detached.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using scenario::a_volume;
using scenario::mounting;

struct FleetVolumes : Fleet {
  // A database on n1 whose volume takes this long to be detached.
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

// The pods have gone when the next agent looks: the volume is all that is left.
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

// What was attached to nobody before the drain is so after a restart, too.
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

// Its pods may have left before anybody looked: for 15 s the drain waits for that alone.
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

// The first attempt ends at the limit for volumes; the next one, a run of its own, finds a volume that no pod uses.
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

// The right was there when the agent started: it is asked for again, and nothing is rebooted meanwhile.
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
