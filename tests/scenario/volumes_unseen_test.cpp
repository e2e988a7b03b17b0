// Volumes that the drain may not read, always or for a while, and volumes whose claim is unknown.
#include "sim/status_bodies.hpp"
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

Json detaching(const std::string& volume) {
  Json attachment = a_volume_attachment(volume);
  attachment["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  attachment["metadata"]["deletionGracePeriodSeconds"] = 0;
  return attachment;
}

sim::FaultRule slower(const std::string& verb, const std::string& resource) {
  return {.verb = verb, .resource = resource, .fault = {.kind = sim::FaultKind::slow, .delay = 30s}};
}

// As with a kubelet's credential, the drain can neither list nor watch VolumeAttachments. By default it does not wait
// for volumes then, and reports the missing right.
TEST_F(Volumes, S67_WhereTheyMayNotBeSeenTheyAreNotWaitedForAndThatIsSaid) {
  cluster.forbid("list", "volumeattachments");
  cluster.forbid("watch", "volumeattachments");
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add_pod_with("db-0", "data");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("RightMissing"));
  ASSERT_THAT(report.diagnoses, SizeIs(1));
  EXPECT_THAT(report.diagnoses.front().message, HasSubstr("volumeattachments"));
}

TEST_F(Volumes, S67_WhereTheyWereAskedForThatEndsTheDrainBeforeAnythingIsTouched) {
  cluster.forbid("list", "volumeattachments");
  options.volumes = drain::VolumeWait::required;
  add(a_volume("data"));
  add_pod_with("db-0", "data");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(report.connection_failed);
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_FALSE(unschedulable());
}

TEST_F(Volumes, S67_WithoutTheRightToGetPersistentVolumesNothingIsChanged) {
  cluster.forbid("get", "persistentvolumes");
  options.volumes = drain::VolumeWait::required;
  options.timeout = 10min;
  add(a_volume("data"));
  add_pod_with("db-0", "data");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_TRUE(report.connection_failed);
  EXPECT_THAT(report.message, HasSubstr("persistentvolumes"));
  EXPECT_THAT(evictions(), IsEmpty());
  EXPECT_FALSE(unschedulable());
}

TEST_F(Volumes, S67_RightsTakenAwayInTheMiddleAreNoEnd) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "60s"}}));
  add_pod_with("db-0", "data");
  after(20s, [this] {
    for (const char* verb : {"list", "watch"}) cluster.forbid(verb, "volumeattachments");
    cluster.close_watches();
  });
  after(5min, [this] {
    for (const char* verb : {"list", "watch"}) cluster.permit(verb, "volumeattachments");
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_GE(took(), 5min);
  EXPECT_TRUE(told.raised("RightMissing"));
  EXPECT_TRUE(told.withdrawn("RightMissing"));
}

// The volume of db-0 is detached before the right is taken away, but another one may have been attached since.
TEST_F(Volumes, ADeadlineWithoutASightOfTheVolumesNamesTheError) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "10s"}}));
  add_pod_with("db-0", "data");
  add(a_pod("slow", {.grace = 120}));
  options.timeout = 5min;
  after(1min, [this] {
    for (const char* verb : {"list", "watch"}) cluster.forbid(verb, "volumeattachments");
    cluster.close_watches();
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, ::testing::AllOf(HasSubstr("proved that the node is drained: "), HasSubstr("403")));
}

TEST_F(Volumes, S67_ARefusalRightAfterAReconnectIsNotTold) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "60s"}}));
  add_pod_with("db-0", "data");
  after(20s, [this] {
    for (const char* verb : {"list", "watch"}) cluster.forbid(verb, "volumeattachments");
    cluster.close_watches();
  });
  after(23s, [this] {
    for (const char* verb : {"list", "watch"}) cluster.permit(verb, "volumeattachments");
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_FALSE(told.raised("RightMissing"));
}

TEST_F(Volumes, NothingIsLeakedBeforeTheNodeHasBeenRead) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  options.timeout = 5min;
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  way = &faults;
  after(10s, [&] {
    faults.add({.verb = "get", .resource = "nodes", .count = 5, .fault = {.kind = sim::FaultKind::server_error}});
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("VolumesUnreadable"));
  EXPECT_EQ(volume(report, "pv-old").outcome, VolumeOutcome::leaked);
}

// Promise P10: while one slow read of the Node is pending, the drain sends no second one.
TEST_F(Volumes, TheNodeIsAskedForItsVolumesOnceAtATime) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  options.timeout = 5min;
  for (int i = 0; i < 20; ++i) add(a_pod("web-" + std::to_string(i), {.grace = 10 + i}));
  options.max_concurrent = 0;
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  way = &faults;
  after(8s, [&] { faults.add(slower("get", "nodes")); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-old").outcome, VolumeOutcome::leaked);
  EXPECT_LT(faults.struck().size(), 10u);
}

TEST_F(Volumes, ARightThatIsLostForAMomentEndsNoWait) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "60s"}}));
  add_pod_with("db-0", "data", {.grace = 30});
  add(a_volume("late", {{"sim.haulout.dev/detaches-after", "60s"}}));
  after(3s, [this] {
    cluster.forbid("get", "persistentvolumes");
    cluster.create("pods", a_pod("late", {.grace = 2, .spec = mounting({"late"})}));
  });
  after(2min, [this] { cluster.permit("get", "persistentvolumes"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
  EXPECT_TRUE(told.raised("RightMissing"));
  EXPECT_TRUE(told.withdrawn("RightMissing"));
}

// The drain cannot read whether the claim of this name is still the one of the released volume. So it waits for the
// volume.
TEST_F(Volumes, WithoutTheRightToReadTheClaimAReleasedVolumeIsWaitedFor) {
  add_released_volume("pv-before", "data");
  add(a_volume("data"));
  add_pod_with("db-0", "data", {.grace = 30});
  cluster.forbid("get", "persistentvolumeclaims");
  options.timeout = 5min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(volume(report, "pv-before").outcome, VolumeOutcome::detaching);
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
  EXPECT_LE(requests("get", "persistentvolumeclaims").size(), 2u);
}

TEST_F(Volumes, AVolumeThatCannotBeReadHoldsNoOtherUp) {
  for (const char* name : {"a", "b", "c", "d"}) {
    add(a_volume(name, {{"sim.haulout.dev/detaches-after", "60s"}}));
    add_pod_with(name, name);
  }
  const auto unreadable = std::make_shared<std::string>();  // name of the first volume that is read
  cluster.server().intercept(
      [unreadable](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
        if (!call.info || call.info->resource != "persistentvolumes") return std::nullopt;
        if (unreadable->empty()) *unreadable = call.name;
        if (call.name != *unreadable) return std::nullopt;
        sim::StatusBody body;
        body.code = 500;
        body.reason = "InternalError";
        body.message = "etcdserver: request timed out";
        return body.response();
      });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const char* name : {"a", "b", "c", "d"}) {
    const std::string volume = std::string("pv-") + name;
    EXPECT_EQ(told.time_of(EventType::volume_waiting, volume).has_value(), volume != *unreadable) << volume;
  }
  EXPECT_TRUE(told.raised("VolumesUnreadable"));
  EXPECT_TRUE(told.withdrawn("VolumesUnreadable")) << "it has gone, whosever it was";
  EXPECT_LT(requests("get", "persistentvolumes").size(), 15u) << "it is asked for more and more seldom";
}

// The list of VolumeAttachments is due exactly at the deadline. It must not be reported as a failure of the server.
TEST_F(Volumes, AReachedDeadlineIsNotReportedAsAServerError) {
  no_latency();
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add(detaching("pv-data"));
  options.timeout = 10min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_GE(requests("list", "volumeattachments").size(), 2u);
  EXPECT_FALSE(told.raised("VolumesUnreadable"));
}

TEST_F(Volumes, AListThatTheDeadlineCutsOffIsNoTroubleOfTheServer) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add(detaching("pv-data"));
  options.timeout = 5min + 20s;
  sim::FaultTransport slow{cluster.api(), clock, world_rng};
  way = &slow;
  after(1min, [&] { slow.add(slower("list", "volumeattachments")); });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(slow.struck(), SizeIs(1));
  EXPECT_FALSE(told.raised("VolumesUnreadable"));
}

TEST_F(Volumes, ADeadlineDuringTheLookUpOfAClaimIsNotReportedAsAServerError) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add(detaching("pv-data"));
  options.timeout = 20s;
  sim::FaultTransport slow{cluster.api(), clock, world_rng};
  way = &slow;
  slow.add(slower("get", "persistentvolumes"));
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(slow.struck(), SizeIs(1));
  EXPECT_FALSE(told.raised("VolumesUnreadable"));
}

TEST_F(Volumes, ADeadlineDuringTheReadOfTheNodeIsNotReportedAsAServerError) {
  add(a_volume("data"));
  add(a_volume_attachment("pv-data"));
  options.timeout = 30s;
  sim::FaultTransport slow{cluster.api(), clock, world_rng};
  way = &slow;
  after(10s, [&] { slow.add(slower("get", "nodes")); });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(slow.struck().empty());
  EXPECT_FALSE(told.raised("VolumesUnreadable"));
}

TEST_F(Volumes, AServerThatFallsSilentBeforeTheDeadlineIsTold) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add(detaching("pv-data"));
  options.timeout = 10min;
  sim::FaultTransport silent{cluster.api(), clock, world_rng};
  way = &silent;
  after(1min, [&] {
    silent.add({.verb = "list", .resource = "volumeattachments", .fault = {.kind = sim::FaultKind::stall}});
  });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_TRUE(told.raised("VolumesUnreadable"));
}

TEST_F(Volumes, S09_WhatABackupOfEtcdBringsBackIsWaitedForAgain) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "40s"}}));
  add_pod_with("db-0", "data", {.grace = 1});
  add(a_pod("slow", {.grace = 60}));
  std::uint64_t backup = 0;
  after(30s, [&] { backup = cluster.revision(); });
  after(50s, [&] {
    EXPECT_EQ(attached_to("n1"), 0u);
    cluster.restore_etcd(backup);
    cluster.restart(1s);
    EXPECT_EQ(attached_to("n1"), 1u);
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
  ASSERT_THAT(report.volumes, SizeIs(1));
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
}

// The restore brings back an evicted pod. The watch of the pods has a revision far ahead and does not deliver this pod.
// Its volume is detached only if the drain evicts the pod again.
TEST_F(Volumes, S09_APodThatABackupBringsBackUnheardOfIsEvictedAgain) {
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "40s"}}));
  add_bystander();
  add(a_pod("slow", {.grace = 10}));
  add_pod_with("web-0", "data", {.grace = 1});
  options.max_concurrent = 1;
  options.timeout = 20min;
  after(5s, [this] { EXPECT_THAT(pods_on("n1"), SizeIs(3)); });
  after(20s, [this] { EXPECT_THAT(pods_on("n1"), SizeIs(1)); });
  restore_unheard(5s, 20s);
  after(25s, [&] { stir_bystander(300); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
}

// Lists of VolumeAttachments fail, and their Retry-After is one minute. They run beside the drain's main loop, and must
// not delay the check whether the node is empty.
TEST_F(Volumes, AFailingLookUpOfVolumesDoesNotDelayTheEndOfTheDrain) {
  options.volumes = drain::VolumeWait::off;
  options.volume_turns = drain::VolumeWait::if_permitted;
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "1h"}}));
  add_pod_with("db-0", "data");
  add(a_pod("slow", {.grace = 315}));
  after(1min, [this] {
    cluster.server().intercept([](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
      if (!call.info || call.info->resource != "volumeattachments" || call.verb != "list") return std::nullopt;
      sim::StatusBody body;
      body.code = 429;
      body.reason = "TooManyRequests";
      body.message = "too many requests";
      body.retry_after = 60;
      return body.response();
    });
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(requests("list", "volumeattachments").size(), 2u) << "it was asked";
  EXPECT_LT(took(), 317s);
}

}  // namespace
}  // namespace haulout::scenario
