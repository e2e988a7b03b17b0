// Tests volumes that were moving from one node to another when the snapshot was taken.
#include "k8s/objects.hpp"
#include "tests/rehearse/rehearsal_fixture.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// The pod db-0 has moved from n1 to n2, and its volume is still attached to n1.
class SnapshottedVolumes : public RehearsalTest {
 protected:
  SnapshottedVolumes() {
    input.drain.volumes = drain::VolumeWait::required;
    input.assumptions.give_up = 1h;
    items.push_back(pod("db-0", "StatefulSet", "db", "100m", "n2"));
    items.back()["spec"]["volumes"] = {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}};
    items.push_back({{"apiVersion", "v1"},
                     {"kind", "PersistentVolumeClaim"},
                     {"metadata", {{"name", "data"}, {"namespace", "shop"}}},
                     {"spec", {{"volumeName", "pv"}}}});
    items.push_back({{"apiVersion", "v1"},
                     {"kind", "PersistentVolume"},
                     {"metadata", {{"name", "pv"}}},
                     {"spec",
                      {{"accessModes", {"ReadWriteOnce"}},
                       {"csi", {{"driver", "csi.example.com"}, {"volumeHandle", "h"}}},
                       {"claimRef", {{"namespace", "shop"}, {"name", "data"}}}}},
                     {"status", {{"phase", "Bound"}}}});
    items.push_back(
        {{"apiVersion", "storage.k8s.io/v1"},
         {"kind", "VolumeAttachment"},
         {"metadata",
          {{"name", k8s::attachment_name(unique_name, "n1")}, {"finalizers", {"external-attacher/csi-example-com"}}}},
         {"spec", {{"attacher", "csi.example.com"}, {"nodeName", "n1"}, {"source", {{"persistentVolumeName", "pv"}}}}},
         {"status", {{"attached", true}}}});
  }
  Json& attachment() { return items.back(); }
  void tell_in_node() {
    item("n1")["status"]["volumesInUse"] = {unique_name};
    item("n1")["status"]["volumesAttached"] = {{{"name", unique_name}, {"devicePath", ""}}};
  }
  void terminate() {
    attachment()["metadata"]["deletionTimestamp"] = "2027-01-15T07:59:58Z";
    attachment()["metadata"]["deletionGracePeriodSeconds"] = 0;
  }

  const std::string unique_name = "kubernetes.io/csi/csi.example.com^h";
};

TEST_F(SnapshottedVolumes, OneThatHasMovedOnIsDetached) {
  tell_in_node();
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << lines_of(rehearsal);
  EXPECT_LE(rehearsal.took, 27s);
}

TEST_F(SnapshottedVolumes, OneThatIsBeingDetachedIsDetached) {
  terminate();
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << lines_of(rehearsal);
  EXPECT_LE(rehearsal.took, 27s);
}

TEST_F(SnapshottedVolumes, WhatTheDriverFailsToDetachHoldsTheDrainUpAndIsNamed) {
  terminate();
  attachment()["status"]["detachError"] = {{"message", "volume h is busy"}};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::blocked);
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("csi.example.com cannot detach it: volume h is busy"));
}

TEST_F(SnapshottedVolumes, OneThatWasMigratedToCsiIsDetached) {
  item("db-0")["spec"]["nodeName"] = "n1";
  item("pv")["spec"].erase("csi");
  item("pv")["spec"]["gcePersistentDisk"] = {{"pdName", "d"}};
  item("pv")["metadata"]["annotations"] = {{"pv.kubernetes.io/migrated-to", "csi.example.com"}};
  tell_in_node();
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained) << lines_of(rehearsal);
  EXPECT_EQ(rehearsal.drains[0].volumes.at(0).outcome, drain::VolumeOutcome::detached);
  EXPECT_LE(rehearsal.took, 52s);
}

}  // namespace
}  // namespace haulout::rehearse
