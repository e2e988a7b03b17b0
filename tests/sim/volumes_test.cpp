// Attaching and detaching of volumes, and failures of both.
#include "k8s/objects.hpp"
#include "tests/sim/volumes_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;

TEST_F(VolumesTest, AttachedForAPodDetachedAfterIt) {
  add_volume();
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    EXPECT_EQ(sim::text(attachment(), "/spec/attacher"), "csi.example.com");
    EXPECT_EQ(sim::text(attachment(), "/spec/source/persistentVolumeName"), "pv");
    EXPECT_TRUE(sim::flag(attachment(), "/status/attached"));
    co_await evict("shop", "db-0");
    co_await pass(5s + 200ms);
    EXPECT_FALSE(sim::terminating(attachment())) << "the pod has gone, its volume is still mounted";
    co_await pass(1s);
    EXPECT_TRUE(sim::terminating(attachment()));
    co_await pass(2s);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, TheNodeTellsWhatIsInUseAndAttached) {
  add_volume({{"sim.haulout.dev/unmounts-after", "20s"}});
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    EXPECT_EQ(cluster.get("nodes", "", "n1")["status"]["volumesInUse"],
              Json::array({"kubernetes.io/csi/csi.example.com^h"}));
    EXPECT_EQ(cluster.get("nodes", "", "n1")["status"]["volumesAttached"],
              Json::array({{{"name", "kubernetes.io/csi/csi.example.com^h"}, {"devicePath", ""}}}));
    EXPECT_EQ(sim::name_of(attachment()), k8s::attachment_name("kubernetes.io/csi/csi.example.com^h", "n1"));
    cluster.remove("pods", "shop", "db-0");
    co_await pass(15s);
    EXPECT_EQ(told("volumesInUse"), 1u);
    EXPECT_FALSE(sim::terminating(attachment())) << "it is not unmounted";
    co_await pass(20s);
    EXPECT_EQ(told("volumesInUse"), 0u);
    EXPECT_EQ(told("volumesAttached"), 0u);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, WithoutItsControllerAVolumeStaysAttachedAndIsSoTold) {
  add_volume();
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.switches().attach_detach = false;
    cluster.remove("pods", "shop", "db-0");
    co_await pass(1h);
    EXPECT_EQ(told("volumesInUse"), 0u);
    EXPECT_EQ(told("volumesAttached"), 1u);
    EXPECT_FALSE(sim::terminating(attachment()));
    cluster.switches().attach_detach = true;
    co_await pass(10s);
    EXPECT_EQ(told("volumesAttached"), 0u);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, ASharedVolumeStaysForItsOtherPod) {
  add_volume();
  cluster.create("pods", user("db-0", "n1"));
  cluster.create("pods", user("db-1", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.remove("pods", "shop", "db-0");
    co_await pass(1min);
    EXPECT_TRUE(attached());
    cluster.remove("pods", "shop", "db-1");
    co_await pass(1min);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, OneNodeAtATimeHasAVolumeThatAllowsOne) {
  add_volume({{"sim.haulout.dev/detaches-after", "30s"}});
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.create("pods", user("db-1", "n2"));
    co_await pass(20s);
    EXPECT_FALSE(attached("n2"));
    cluster.remove("pods", "shop", "db-0");
    co_await pass(20s);
    EXPECT_TRUE(attached("n1"));
    EXPECT_FALSE(attached("n2"));
    co_await pass(30s);
    EXPECT_FALSE(attached("n1"));
    EXPECT_TRUE(attached("n2"));
  });
}

// A disk of one machine: its pod waits until that machine takes pods again.
TEST_F(VolumesTest, APodGoesWhereItsVolumeIs) {
  add_volume();
  cluster.patch(
      "persistentvolumes", "", "pv",
      {{"spec",
        {{"nodeAffinity",
          {{"required",
            {{"nodeSelectorTerms",
              {{{"matchFields", {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n2"}}}}}}}}}}}}}}});
  cluster.patch("nodes", "", "n2", {{"spec", {{"unschedulable", true}}}});
  Json pod = user("db-0", "");
  pod["spec"].erase("nodeName");
  pod["status"] = {{"phase", "Pending"}};
  cluster.create("pods", pod);
  in_world([&]() -> awaitable<void> {
    co_await pass(20s);
    const Json waiting = cluster.get("pods", "shop", "db-0");
    EXPECT_EQ(sim::text(waiting, "/spec/nodeName"), "");
    EXPECT_EQ(sim::text(sim::condition(waiting, "PodScheduled"), "/message"),
              "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were "
              "unschedulable.");
    cluster.patch("nodes", "", "n2", {{"spec", {{"unschedulable", false}}}});
    co_await pass(20s);
    EXPECT_EQ(sim::text(cluster.get("pods", "shop", "db-0"), "/spec/nodeName"), "n2");
  });
}

TEST_F(VolumesTest, ManyNodesHaveAVolumeThatAllowsMany) {
  add_volume(Json::object(), "ReadWriteMany");
  cluster.create("pods", user("db-0", "n1"));
  cluster.create("pods", user("db-1", "n2"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    EXPECT_TRUE(attached("n1"));
    EXPECT_TRUE(attached("n2"));
  });
}

TEST_F(VolumesTest, ADriverThatNeedsNoAttachmentHasNone) {
  cluster.create("csidrivers", {{"metadata", {{"name", "csi.example.com"}}}, {"spec", {{"attachRequired", false}}}});
  add_volume();
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(10s);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, WhatTheDriverSaysStandsInTheStatus) {
  add_volume({{"sim.haulout.dev/detach-fails-for", "20s"}});
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.remove("pods", "shop", "db-0");
    co_await pass(5s);
    EXPECT_NE(sim::text(attachment(), "/status/detachError/message"), "");
    co_await pass(25s);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, ASilentKubeletCostsSixMinutes) {
  add_volume();
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.stop_kubelet("n1");
    cluster.remove("pods", "shop", "db-0");
    co_await pass(5min);
    EXPECT_TRUE(attached());
    EXPECT_EQ(told("volumesInUse"), 1u) << "it said so, and says no more";
    co_await pass(90s);
    EXPECT_FALSE(attached());
  });
}

TEST_F(VolumesTest, APodStartsWhenItsVolumesAreAttached) {
  add_volume({{"sim.haulout.dev/detaches-after", "30s"}});
  cluster.create("pods", user("db-0", "n1"));
  Json next = user("db-1", "n2");
  next["status"] = {{"phase", "Pending"}};
  const auto phase = [&] { return sim::text(cluster.get("pods", "shop", "db-1"), "/status/phase"); };
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.create("pods", next);
    co_await pass(2s);
    EXPECT_EQ(phase(), "Running") << "unless it is switched on, nobody waits";
    cluster.remove("pods", "shop", "db-1");
    cluster.switches().pods_wait_for_volumes = true;
    cluster.timing().attach_retry = 1s;
    cluster.create("pods", next);
    co_await pass(10min);
    EXPECT_EQ(phase(), "Pending");
    cluster.remove("pods", "shop", "db-0");
    co_await pass(31s);
    EXPECT_EQ(phase(), "Pending");
    co_await pass(5s);
    EXPECT_EQ(phase(), "Running");
  });
}

TEST_F(VolumesTest, WhatNoPodEverUsedIsLeftAlone) {
  add_volume();
  cluster.create(
      "volumeattachments",
      {{"metadata", {{"name", "old"}}},
       {"spec", {{"attacher", "csi.example.com"}, {"nodeName", "n1"}, {"source", {{"persistentVolumeName", "pv"}}}}}});
  cluster.create("pods", ready_pod("shop", "web-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(2s);
    cluster.remove("pods", "shop", "web-0");
    co_await pass(1h);
    EXPECT_TRUE(attached());
  });
}

}  // namespace
}  // namespace haulout::testing
