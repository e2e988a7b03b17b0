// Volumes that were attached before the simulation began, as a snapshot of a real cluster shows them.
#include "k8s/objects.hpp"
#include "tests/sim/volumes_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;

class SnapshotVolumes : public VolumesTest {
 protected:
  static constexpr const char* unique_name = "kubernetes.io/csi/csi.example.com^h";
  // Adds a VolumeAttachment as kube-controller-manager created it before the snapshot.
  void add_attachment(const std::string& name_of_volume, Json metadata = Json::object(), Json status = Json::object()) {
    metadata["name"] = k8s::attachment_name(name_of_volume, "n1");
    metadata["finalizers"] = {"external-attacher/csi.example.com"};
    status["attached"] = true;
    cluster.create(
        "volumeattachments",
        {{"metadata", metadata},
         {"spec", {{"attacher", "csi.example.com"}, {"nodeName", "n1"}, {"source", {{"persistentVolumeName", "pv"}}}}},
         {"status", status}});
  }
  void add_migrated_volume(const Json& annotations) {
    const std::string name = "kubernetes.io/csi/csi.example.com^projects/UNSPECIFIED/zones/a/disks/d";
    add_volume(annotations);
    cluster.patch("persistentvolumes", "", "pv",
                  {{"spec", {{"csi", nullptr}, {"gcePersistentDisk", {{"pdName", "d"}}}}}});
    add_attachment(name);
    say(name, {"volumesInUse", "volumesAttached"});
  }
  // Makes the volume the only entry of each list in `lists`: "volumesInUse" or "volumesAttached" of Node n1's status.
  void say(const std::string& name_of_volume, const std::vector<std::string>& lists) {
    for (const std::string& list : lists)
      cluster.patch(
          "nodes", "", "n1",
          {{"status",
            {{list, list == "volumesInUse" ? Json::array({name_of_volume})
                                           : Json::array({{{"name", name_of_volume}, {"devicePath", "csi-1"}}})}}}});
  }
};

// When the snapshot was taken, the volume's pod was already on n2, but n1 still showed the volume.
TEST_F(SnapshotVolumes, WhatTheNodeStillTellsOfIsUnmountedAndDetached) {
  add_volume();
  add_attachment(unique_name);
  say(unique_name, {"volumesInUse", "volumesAttached"});
  cluster.create("pods", user("db-0", "n2"));
  in_world([&]() -> awaitable<void> {
    co_await pass(10s);
    EXPECT_FALSE(attached());
    EXPECT_TRUE(attached("n2"));
    EXPECT_EQ(told("volumesInUse"), 0u);
    EXPECT_EQ(told("volumesAttached"), 0u);
  });
}

TEST_F(SnapshotVolumes, WhatIsUnmountedAndStillAttachedIsDetached) {
  add_volume();
  add_attachment(unique_name);
  say(unique_name, {"volumesAttached"});
  in_world([&]() -> awaitable<void> {
    co_await pass(10s);
    EXPECT_FALSE(attached());
  });
}

TEST_F(SnapshotVolumes, WhatAPodUsesThatWasThereBeforeStaysAttached) {
  add_attachment(unique_name);
  say(unique_name, {"volumesInUse", "volumesAttached"});
  cluster.create("pods", user("db-0", "n1"));
  add_volume();
  in_world([&]() -> awaitable<void> {
    co_await pass(1h);
    EXPECT_TRUE(attached());
    EXPECT_FALSE(sim::terminating(attachment()));
    EXPECT_EQ(told("volumesInUse"), 1u);
    EXPECT_EQ(told("volumesAttached"), 1u);
  });
}

TEST_F(SnapshotVolumes, WhatWasBeingDetachedWhenItCameIsDetached) {
  add_volume({{"sim.haulout.dev/detaches-after", "30s"}});
  add_attachment(unique_name, {{"deletionTimestamp", "2026-11-22T10:00:00Z"}, {"deletionGracePeriodSeconds", 0}});
  in_world([&]() -> awaitable<void> {
    co_await pass(29s);
    EXPECT_TRUE(attached());
    co_await pass(2s);
    EXPECT_FALSE(attached());
  });
}

TEST_F(SnapshotVolumes, WhatTheDriverHadFailedToDetachWhenItCameStays) {
  add_volume();
  add_attachment(unique_name, {{"deletionTimestamp", "2026-11-22T10:00:00Z"}, {"deletionGracePeriodSeconds", 0}},
                 {{"detachError", {{"message", "volume h is busy"}}}});
  in_world([&]() -> awaitable<void> {
    co_await pass(1h);
    EXPECT_TRUE(attached());
  });
}

TEST_F(SnapshotVolumes, ThatAPersonAsksTheDriverToDetach) {
  add_volume();
  add_attachment(unique_name);
  in_world([&]() -> awaitable<void> {
    co_await pass(1h);
    EXPECT_TRUE(attached());
    cluster.delete_gracefully("volumeattachments", "", sim::name_of(attachment()));
    co_await pass(3s);
    EXPECT_FALSE(attached());
  });
}

// The volume's driver was migrated to CSI. The translation to CSI gives the volume a name that its PersistentVolume
// does not contain.
TEST_F(SnapshotVolumes, AVolumeThatWasMigratedToCsi) {
  add_migrated_volume({{"pv.kubernetes.io/migrated-to", "csi.example.com"}});
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(10s);
    EXPECT_TRUE(attached());
    EXPECT_EQ(told("volumesInUse"), 1u) << "under one name";
    cluster.remove("pods", "shop", "db-0");
    cluster.create("pods", user("db-1", "n2"));
    co_await pass(10s);
    EXPECT_FALSE(attached());
    EXPECT_EQ(told("volumesInUse"), 0u);
    EXPECT_EQ(told("volumesAttached"), 0u);
    EXPECT_TRUE(attached("n2"));
    EXPECT_EQ(told("volumesAttached", "n2"), 1u);
  });
}

TEST_F(SnapshotVolumes, WhatIsAttachedIsDetachedThoughNobodySaysByWhatItWasMigrated) {
  add_migrated_volume(Json::object());
  cluster.create("pods", user("db-0", "n1"));
  in_world([&]() -> awaitable<void> {
    co_await pass(10s);
    EXPECT_TRUE(attached());
    cluster.remove("pods", "shop", "db-0");
    co_await pass(10s);
    EXPECT_FALSE(attached());
    EXPECT_EQ(told("volumesInUse"), 0u);
  });
}

}  // namespace
}  // namespace haulout::testing
