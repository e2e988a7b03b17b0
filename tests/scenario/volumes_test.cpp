// Volumes that are still attached to the node when the node's pods are deleted.
#include "drain/cordon.hpp"
#include "tests/scenario/volumes_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::VolumeOutcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Volumes, S64_DetachTakesNinetySecondsAndFailsOnce) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "60s"}, {"sim.haulout.dev/detach-fails-for", "30s"}}));
  add_pod_with("db-0", "data");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
  EXPECT_GE(took(), 100s) << "10 s of grace, 90 s of detaching";
  EXPECT_LT(took(), 102s) << "the end is seen, not polled for";
  EXPECT_TRUE(told.raised("VolumeDetachError"));
  EXPECT_TRUE(told.withdrawn("VolumeDetachError"));
  const auto& data = volume(report, "pv-data");
  EXPECT_EQ(data.outcome, VolumeOutcome::detached);
  EXPECT_EQ(data.claim, "shop/data");
  EXPECT_EQ(data.driver, "csi.example.com");
  EXPECT_TRUE(data.unused_at && data.detached_at && *data.detached_at - *data.unused_at >= 90s);
  EXPECT_THAT(report.message, HasSubstr("1 volume detached"));
}

TEST_F(Volumes, S64_WhatTheDriverSaysIsTold) {
  add(a_volume("data", {{"sim.haulout.dev/detach-fails-for", "30s"}}));
  add_pod_with("db-0", "data");
  drain();
  EXPECT_THAT(told.entries, ::testing::Contains(::testing::AllOf(
                                ::testing::Field(&Recorder::Entry::type, EventType::volume_waiting),
                                ::testing::Field(&Recorder::Entry::message, HasSubstr("volume pv-data is busy")))));
  EXPECT_EQ(told.count(EventType::volume_detached), 1u);
}

TEST_F(Volumes, AVolumeWhoseNamespaceDiesIsDetached) {
  add(a_volume("data"));
  add_pod_with("db-0", "data", {.grace = 5});
  after(1s, [this] { cluster.terminate_namespace("shop"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
  EXPECT_LT(took(), 20s);
}

TEST_F(Volumes, S65_ALeakedAttachmentIsDiagnosedAndHoldsNothingUp) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  add(a_volume_attachment("pv-of-nobody"));  // has no PersistentVolume either
  add(a_volume("data"));
  add_pod_with("db-0", "data", {.grace = 30});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 40s);
  EXPECT_EQ(volume(report, "pv-old").outcome, VolumeOutcome::leaked);
  EXPECT_EQ(volume(report, "pv-of-nobody").outcome, VolumeOutcome::leaked);
  EXPECT_TRUE(told.raised("VolumeAttachmentLeaked"));
  EXPECT_THAT(report.diagnoses, SizeIs(2));
  EXPECT_EQ(attached_to("n1"), 2u) << "nobody deletes them but a human";
}

// The mark is from `haulout cordon` or from an earlier drain, and a person may have removed that cordon since. So the
// mark proves nothing about volumes.
TEST_F(Volumes, S65_ALeakedAttachmentHoldsNoCommandUpThatFindsAMark) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  options.volumes = drain::VolumeWait::required;
  options.run_id = "this";
  options.timeout = 10min;
  for (const bool cordoned : {true, false}) {
    const drain::CordonMark mark{"an earlier run", "ann", clock.wall_now()};
    cluster.patch("nodes", "", "n1",
                  {{"metadata", {{"annotations", {{"haulout.dev/cordon", drain::encode_mark(mark)}}}}},
                   {"spec", {{"unschedulable", cordoned}}}});
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::drained)) << cordoned;
    EXPECT_EQ(volume(report, "pv-old").outcome, VolumeOutcome::leaked) << cordoned;
    EXPECT_LT(took(), 20s) << cordoned;
  }
}

TEST_F(Volumes, ALeakedAttachmentThatSomebodyRemovesIsNoDiagnosisAnyMore) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  add(a_volume("data"));
  add_pod_with("db-0", "data", {.grace = 90});
  after(60s, [this] {
    EXPECT_TRUE(told.raised("VolumeAttachmentLeaked"));
    cluster.remove("volumeattachments", "", "csi-pv-old-n1");
  });
  after(62s, [this] { EXPECT_TRUE(told.withdrawn("VolumeAttachmentLeaked")); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(report.diagnoses, ::testing::IsEmpty());
}

TEST_F(Volumes, S66_ASharedVolumeStaysForThePodThatStays) {
  add(a_volume("shared", Json::object(), "ReadWriteMany"));
  add(a_workload("DaemonSet", "logs", 0, mounting({"shared"})));
  add_pod_with("web-0", "shared");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-shared").outcome, VolumeOutcome::kept);
  EXPECT_LT(took(), 15s);
  EXPECT_EQ(told.count(EventType::volume_waiting), 0u);
}

TEST_F(Volumes, S66_ASharedVolumeIsWaitedForAfterItsLastUser) {
  add(a_volume("shared", {{"sim.haulout.dev/detaches-after", "20s"}}, "ReadWriteMany"));
  add_pod_with("web-0", "shared", {.grace = 5});
  add_pod_with("web-1", "shared", {.grace = 40});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 60s);
  EXPECT_EQ(told.count(EventType::volume_waiting), 2u) << "unmounted, then being detached: both after the last";
}

TEST_F(Volumes, S68_TheDeadlineDuringTheWaitIsNoSuccess) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add_pod_with("db-0", "data");
  options.timeout = 5min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, HasSubstr("pv-data"));
  EXPECT_GE(took(), 5min);
  EXPECT_LT(took(), 5min + 1s);
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detaching);
  EXPECT_FALSE(unschedulable()) << "it ended: the cordon is taken back";
}

TEST_F(Volumes, S68_PastItsLimitItIsSaidAndWaitedFor) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "20m"}}));
  add_pod_with("db-0", "data");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  const auto raised = told.time_of(EventType::diagnosis_raised, "VolumeStuck");
  ASSERT_TRUE(raised);
  EXPECT_GE(*raised - *volume(report, "pv-data").unused_at, options.volume_limit);
  EXPECT_LE(*raised - *volume(report, "pv-data").unused_at, options.volume_limit + 1s);
  EXPECT_TRUE(told.withdrawn("VolumeStuck"));
}

TEST_F(Volumes, S68_TheLimitEndsTheDrainWhenItIsToldTo) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add_pod_with("db-0", "data");
  add(a_pod("slow", {.grace = 240}));
  options.end_at_volume_limit = true;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, HasSubstr("pv-data"));
  EXPECT_THAT(pods_on("n1"), IsEmpty()) << "no pod is left for the sake of a volume";
  EXPECT_GE(took(), 240s);
}

// A watch that died unnoticed does not report the detach. So the drain lists once more before it gives up.
TEST_F(Volumes, S68_TheLimitEndsNoDrainOverAVolumeThatIsDetached) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "30s"}}));
  add_pod_with("db-0", "data");
  options.end_at_volume_limit = true;
  options.volume_limit = 60s;
  after(20s, [this] { cluster.silence_watches(); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(Volumes, OneListIsAllWhereNothingIsAttached) {
  add_pods(3);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(asked_for_volumes(), 1u);
}

TEST_F(Volumes, WhatAPodUsesThatStaysHoldsNothingUp) {
  add_pods(3);
  add(a_volume("logs"));
  add(a_workload("DaemonSet", "logs", 0, mounting({"logs"})));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-logs").outcome, VolumeOutcome::kept);
  EXPECT_LT(took(), 16s);
}

// An earlier drain ended at its deadline while a volume was being detached. The next drain is another run, and waits
// until the volume is detached.
TEST_F(Volumes, WhatOthersLeftBehindIsWaitedForWhileItIsBeingDetached) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "90s"}}));
  add_pod_with("db-0", "data");
  options.timeout = 30s;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  ASSERT_EQ(attached_to("n1"), 1u);
  options.timeout.reset();
  options.run_id = "another";
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
}

// The command keeps no state between runs, and a person's cordon has no mark. Only the Node's status shows that the
// volume is still in use.
TEST_F(Volumes, S64_TheNextDrainWaitsForWhatIsNeitherUnmountedNorBeingDetached) {
  options.volumes = drain::VolumeWait::required;
  options.timeout = 5min;
  add(a_volume("data", {{"sim.haulout.dev/unmounts-after", "24h"}}));
  add_pod_with("db-0", "data");
  cluster.patch("nodes", "", "n1", {{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  options.run_id = "another";
  auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detaching);
  EXPECT_FALSE(told.raised("VolumeAttachmentLeaked"));
  after(30s, [this] {
    cluster.patch("persistentvolumes", "", "pv-data",
                  {{"metadata", {{"annotations", {{"sim.haulout.dev/unmounts-after", "1s"}}}}}});
  });
  options.run_id = "a third";
  report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
}

TEST_F(Volumes, NothingIsAskedWhenTheyAreNotWaitedFor) {
  options.volumes = drain::VolumeWait::off;
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add_pod_with("db-0", "data");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(asked_for_volumes(), 0u);
}

// A late pod has a volume. The drain waits until it is detached.
TEST_F(Volumes, TheVolumeOfALatePod) {
  add_pods(1, {.grace = 20});
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "40s"}}));
  after(3s, [this] {
    auto late = a_pod("late", {.grace = 2, .spec = mounting({"data"})});
    cluster.create("pods", late);
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
}

// Another process began this run and evicted the pods. The process that resumes the run does not know which pods used
// the volumes, so it waits for all that are attached.
TEST_F(Volumes, ARunThatIsResumedExpectsWhatIsAttached) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "90s"}}));
  add_pod_with("db-0", "data");
  options.timeout = 30s;
  options.restore_cordon_on_failure = false;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  ASSERT_EQ(attached_to("n1"), 1u);
  options.timeout.reset();
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
}

// The claim of a generic ephemeral volume is deleted with its pod. The PersistentVolume remains until it is detached.
TEST_F(Volumes, AGenericEphemeralVolume) {
  add(a_volume("db-0-scratch", {{"sim.haulout.dev/detaches-after", "40s"}}));
  add(a_pod("db-0", {.spec = {{"volumes", {{{"name", "scratch"}, {"ephemeral", Json::object()}}}}}}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 50s);
  EXPECT_EQ(attached_to("n1"), 0u);
}

TEST_F(Volumes, ADeadWatchFindsTheEndByAList) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "60s"}}));
  add_pod_with("db-0", "data");
  after(15s, [this] { cluster.silence_watches(); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 5min);
}

// A claim was deleted, its volume was retained, and a new claim was created with the same name. The drain does not wait
// for the retained volume.
TEST_F(Volumes, AVolumeOfAnEarlierClaimOfThatNameBelongsToNoPod) {
  add_released_volume("pv-before", "data");
  add(a_volume("data"));
  add_pod_with("db-0", "data", {.grace = 30});
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 50s);
  EXPECT_EQ(volume(report, "pv-before").outcome, VolumeOutcome::leaked);
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
  EXPECT_EQ(attached_to("n1"), 1u) << "nobody deletes it but a human";
}

// Promise P12: the server does not validate claimRef, and people patch it by hand to bind a volume again. A claimRef
// without a namespace must not crash the program.
TEST_F(Volumes, AClaimRefWithoutANamespaceEndsNoProgram) {
  Json volume = a_volume("data")["items"][0];
  volume["metadata"]["name"] = "pv-odd";
  volume["spec"]["claimRef"] = {{"name", "data"}};
  volume["status"] = {{"phase", "Available"}};
  add(volume);
  add(a_volume_attachment("pv-odd"));
  add(a_volume("data"));
  add_pod_with("db-0", "data", {.grace = 2});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

TEST_F(Volumes, AReleasedVolumeWhoseClaimHasGoneIsStillItsPods) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "60s"}}));
  add_pod_with("db-0", "data");
  after(0s, [this] {
    cluster.remove("persistentvolumeclaims", "shop", "data");
    cluster.patch("persistentvolumes", "", "pv-data", {{"status", {{"phase", "Released"}}}});
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 70s);
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
}

}  // namespace
}  // namespace haulout::scenario
