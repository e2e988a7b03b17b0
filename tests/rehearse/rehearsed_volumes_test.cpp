// Tests how long a rehearsal takes for volumes. A snapshot does not contain these durations.
#include "cli/rehearse/rehearsal_text.hpp"
#include "tests/rehearse/rehearsal_fixture.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

// On n1 are two pods of a StatefulSet, each with a disk. They take 20 s to terminate.
class RehearsedVolumes : public RehearsalTest {
 protected:
  RehearsedVolumes() {
    leave_out([](const Json& item) { return item["metadata"]["name"].get<std::string>().starts_with("web"); });
    items.push_back(workload("StatefulSet", "db", {{"replicas", 2}, {"serviceName", "db"}}));
    item("db")["spec"]["volumeClaimTemplates"] = {{{"metadata", {{"name", "data"}}}}};
    for (const char* name : {"db-0", "db-1"}) {
      items.push_back(pod(name, "StatefulSet", "db", "500m"));
      give_volume(name);
    }
    input.drain.volumes = drain::VolumeWait::required;
  }

  void leave_out(bool (*unwanted)(const Json&)) {
    items.erase(std::remove_if(items.begin(), items.end(), unwanted), items.end());
  }
  Json& attachment(const std::string& pod) { return item("csi-pv-" + pod); }
};

constexpr const char* detached = "a volume is detached 30s after its last pod on the node was deleted";

TEST_F(RehearsedVolumes, TheDetachingTakesAsLongAsIsAssumed) {
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  ASSERT_THAT(rehearsal.drains[0].volumes, SizeIs(2));
  EXPECT_GE(rehearsal.took, 20s + 30s);
  EXPECT_LE(rehearsal.took, 20s + 30s + 1s);
  for (const Duration assumed : {0ms, 200ms, 90000ms}) {
    input.assumptions.detach_within = assumed;
    const Duration took = play().took;
    EXPECT_GE(took, 20s + assumed);
    EXPECT_LE(took, 20s + assumed + 5s + 1s) << "with the settle time";
  }
}

TEST_F(RehearsedVolumes, WithoutTheOptionTheDrainDoesNotWaitForVolumes) {
  input.drain.volumes = drain::VolumeWait::off;
  EXPECT_LE(play().took, 20s + 5s + 1s);
}

// The disk can be attached to another node only after it is detached from this one.
TEST_F(RehearsedVolumes, AReplacementStartsWhenItsVolumeIsAttached) {
  add_narrow_budget("db");
  input.assumptions.detach_within = 40s;
  input.assumptions.attach_within = 25s;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  const Duration one = 20s + 40s + 25s + 30s;
  EXPECT_GE(rehearsal.took, one + 20s + 40s);
  EXPECT_LE(rehearsal.took, one + 20s + 40s + 4s);
}

// The most frequent reason why a pod does not come back: its disk is on the machine that is drained, or in a zone
// without another node.
TEST_F(RehearsedVolumes, APodFindsNoNodeThatItsVolumeCanReach) {
  const auto bind = [&](const char* volume, const char* node) {
    item(volume)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = {
        {{"matchFields", {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}}}}}};
  };
  bind("pv-db-0", "n1");
  bind("pv-db-1", "n2");
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  ASSERT_THAT(rehearsal.no_room, SizeIs(1));
  EXPECT_EQ(rehearsal.no_room[0].pod, "shop/db-0");
  EXPECT_THAT(rehearsal.no_room[0].message, HasSubstr("1 node(s) didn't match PersistentVolume's node affinity"));
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  EXPECT_THAT(rehearsal.not_weighed, IsEmpty()) << "the volumes of both pods are weighed";
}

TEST_F(RehearsedVolumes, ASharedVolumeIsAttachedAtOnce) {
  for (const char* name : {"pv-db-0", "pv-db-1"}) item(name)["spec"]["accessModes"] = {"ReadWriteMany"};
  add_narrow_budget("db");
  input.drain.volumes = drain::VolumeWait::off;
  input.assumptions.attach_within = 25s;
  const Rehearsal rehearsal = play();
  EXPECT_GE(rehearsal.took, 20s + 25s + 30s + 20s);
  EXPECT_LE(rehearsal.took, 20s + 25s + 30s + 20s + 4s);
}

TEST_F(RehearsedVolumes, WhatIsAssumedOfThemIsSaid) {
  Rehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.assumed,
              AllOf(SizeIs(4), Contains(detached),
                    Contains("attaching a volume to another node takes 15s, after the node that had it "
                             "exclusively has detached it; its pod is Ready 30s after that")));
  EXPECT_THAT(lines_of(rehearsal), HasSubstr(std::string("\n  ") + detached + "\n"));
  const Json assumed = Json::parse(cli::rehearsal_json(rehearsal, input.assumptions))["assumptions"];
  EXPECT_EQ(assumed["detachWithinSeconds"], 30.0);
  EXPECT_EQ(assumed["attachWithinSeconds"], 15.0);
  EXPECT_THAT(assumed["all"], Contains(detached));
  input.assumptions.detach_within = 90s;
  input.assumptions.attach_within = 2s;
  rehearsal = play();
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("is detached 1m30s after"), HasSubstr("to another node takes 2s")));
  input.nodes = {"n2"};
  EXPECT_THAT(play().assumed, SizeIs(2)) << "nothing is attached to that one";
}

TEST_F(RehearsedVolumes, TheTimeIsNotCalledAnUpperBound) {
  EXPECT_THAT(lines_of(play()), Not(HasSubstr("upper bound")));
}

TEST_F(RehearsedVolumes, WhatIsBeingAttachedOrDetachedComesToItsEnd) {
  attachment("db-0")["status"] = {{"attached", false}};
  items.push_back(attachment("db-1"));
  items.back()["metadata"] = {{"name", "csi-old"},
                              {"finalizers", {"external-attacher/disks-example-com"}},
                              {"deletionTimestamp", "2027-01-15T07:59:00Z"}};
  items.back()["spec"]["source"]["persistentVolumeName"] = "pv-old";
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_THAT(rehearsal.drains[0].volumes, SizeIs(2));
  EXPECT_THAT(rehearsal.assumed, Contains(EndsWith("when a pod needs them: PersistentVolume pv-db-0")));
}

// Whether a driver attaches volumes is in `attachRequired` of its CSIDriver, which the snapshot does not contain. The
// rehearsal concludes it from running pods whose volumes are not attached.
TEST_F(RehearsedVolumes, ADriverThatAttachesNothingIsKnownByItsPods) {
  const Json before = items;
  leave_out([](const Json& item) { return item["kind"] == "VolumeAttachment"; });
  add_narrow_budget("db");
  const Rehearsal rehearsal = play();
  EXPECT_LE(rehearsal.took, 20s + 30s + 20s + 5s + 2s);
  EXPECT_THAT(rehearsal.assumed,
              AllOf(SizeIs(3), Contains(EndsWith("has no VolumeAttachment of these drivers: disks.example.com"))));
  items = before;
  leave_out([](const Json& item) { return item["metadata"]["name"] == "csi-pv-db-0"; });
  EXPECT_THAT(play().drains[0].volumes, SizeIs(2)) << "one is attached, so the other will be";
}

// The volume is older than CSI. The CSI driver that has replaced its driver makes its attachments.
TEST_F(RehearsedVolumes, AVolumeThatNamesNoDriverIsDetachedToo) {
  item("pv-db-0")["spec"].erase("csi");
  item("pv-db-0")["spec"]["awsElasticBlockStore"] = {{"volumeID", "vol-1"}};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_THAT(rehearsal.drains[0].volumes, SizeIs(2));
}

TEST_F(RehearsedVolumes, AgentsWaitForThem) {
  FleetInput fleet;
  fleet.snapshot = {.documents = {{document()}}, .read_at = input.snapshot.read_at};
  const auto drained_within = [&](Duration detached_in) {
    fleet.assumptions.detach_within = detached_in;
    const auto rehearsal = rehearse_fleet(fleet);
    if (!rehearsal) throw std::runtime_error(rehearsal.error().message());
    for (const FleetNode& node : rehearsal->nodes)
      if (node.name == "n1") return std::pair(drained_in(node, rehearsal->ended), *rehearsal);
    throw std::runtime_error("no n1");
  };
  const auto [soon, first] = drained_within(30s);
  EXPECT_THAT(first.assumed, Contains(detached));
  EXPECT_EQ(Json::parse(cli::fleet_json(first, fleet))["assumptions"]["detachWithinSeconds"], 30.0);
  const auto [late, second] = drained_within(2h);
  EXPECT_EQ(cli::exit_code(second), 0) << "that is slow, not stuck";
  EXPECT_GE(late, soon + 118min);
}

}  // namespace
}  // namespace haulout::rehearse
