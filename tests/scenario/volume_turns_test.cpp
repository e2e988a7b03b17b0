// --serialize-volumes: pods whose volumes belong to one CSI driver leave one at a time.
#include "drain/volume_turns.hpp"

#include "sim/status_bodies.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::VolumeOutcome;
using drain::VolumeWait;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VolumeTurns : public Scenario {
 protected:
  VolumeTurns() {
    options.volume_turns = VolumeWait::if_permitted;
    options.max_concurrent = 0;
  }
  // Adds a claim, a volume that takes 20 s to detach, and a pod that uses it, all with this name.
  void add_pod_with_volume(const std::string& name, const std::string& driver, PodSpec spec = {},
                           const Json& annotations = {{"sim.haulout.dev/detaches-after", "20s"}}) {
    Json volume = a_volume(name, annotations);
    volume["items"][0]["spec"]["csi"]["driver"] = driver;
    add(volume);
    spec.spec.merge_patch(mounting({name}));
    add(a_pod(name, spec));
  }
  void add_three_and_two() {
    for (const char* name : {"a-0", "a-1", "a-2"}) add_pod_with_volume(name, "disks.example.com");
    for (const char* name : {"b-0", "b-1"}) add_pod_with_volume(name, "files.example.com");
    add_pods(3);
  }
  Duration evicted_after(const std::string& name) const {
    return sent_at(name) - told.time_of(EventType::cordoned, "").value_or(WallTime{});
  }
  // Each pod is evicted as soon as the volume of the pod before is detached, and not earlier.
  void expect_one_after_the_other(const drain::Report& report, const std::vector<std::string>& names) const {
    for (std::size_t i = 1; i < names.size(); ++i) {
      const auto& before = volume(report, "pv-" + names[i - 1]);
      ASSERT_TRUE(before.detached_at) << names[i];
      EXPECT_GE(sent_at(names[i]), *before.detached_at) << names[i];
      EXPECT_LT(sent_at(names[i]), *before.detached_at + 100ms) << names[i];
    }
  }
  bool was_held(const std::string& name) const {
    return std::any_of(told.entries.begin(), told.entries.end(), [&](const Recorder::Entry& entry) {
      return entry.type == EventType::parked && entry.pod == "shop/" + name && entry.reason == "VolumesInTurn";
    });
  }
};

TEST_F(VolumeTurns, TwoDriversSideBySideOnePodAtATimeEach) {
  add_three_and_two();
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  expect_one_after_the_other(report, {"a-0", "a-1", "a-2"});
  expect_one_after_the_other(report, {"b-0", "b-1"});
  for (const char* name : {"a-0", "b-0", "web-0", "web-1", "web-2"}) EXPECT_LT(evicted_after(name), 1s);
  EXPECT_TRUE(was_held("a-1"));
  EXPECT_FALSE(was_held("a-0"));
  EXPECT_GE(took(), 3 * 30s);
  EXPECT_LT(took(), 3 * 35s);
}

TEST_F(VolumeTurns, WithoutTheOptionAllLeaveAtOnceAndNothingMoreIsAsked) {
  add_three_and_two();
  options.volume_turns = VolumeWait::off;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const char* name : {"a-0", "a-1", "a-2", "b-0", "b-1"}) EXPECT_LT(evicted_after(name), 1s);
  EXPECT_EQ(asked_for_volumes(), 8u) << "a list before, a watch, five volumes, a list at the end";
}

TEST_F(VolumeTurns, TurnsFollowTheAttachmentsThatAreFollowedAnyway) {
  add_three_and_two();
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(requests("list", "volumeattachments").size(), 2u);
  EXPECT_EQ(requests("watch", "volumeattachments").size(), 1u);
}

TEST_F(VolumeTurns, AStuckVolumeLetsTheOthersGoAfterTheLimit) {
  add_pod_with_volume("a-0", "disks.example.com", {}, {{"sim.haulout.dev/detaches-after", "1h"}});
  for (const char* name : {"a-1", "a-2"}) add_pod_with_volume(name, "disks.example.com");
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  const auto& stuck = volume(report, "pv-a-0");
  ASSERT_TRUE(stuck.unused_at);
  EXPECT_GE(sent_at("a-1"), *stuck.unused_at + options.volume_limit);
  EXPECT_LT(sent_at("a-1"), *stuck.unused_at + options.volume_limit + 1s);
  expect_one_after_the_other(report, {"a-1", "a-2"});
}

TEST_F(VolumeTurns, WithoutALimitTheyAreHeldAndThatIsSaid) {
  add_pod_with_volume("a-0", "disks.example.com", {}, {{"sim.haulout.dev/detaches-after", "1h"}});
  add_pod_with_volume("a-1", "disks.example.com");
  options.volume_limit = 0s;
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(pod(report, "a-1").attempts, 0u);
  EXPECT_EQ(pod(report, "a-1").reason, "VolumesInTurn");
  EXPECT_THAT(pod(report, "a-1").message, AllOf(HasSubstr("disks.example.com"), HasSubstr("pv-a-0")));
}

TEST_F(VolumeTurns, PodsThatShareAVolumeDoNotWaitForIt) {
  add(a_volume("shared", {{"sim.haulout.dev/detaches-after", "20s"}}, "ReadWriteMany"));
  for (const char* name : {"s-0", "s-1"}) add(a_pod(name, {.spec = mounting({"shared"})}));
  add_pod_with_volume("z-0", "csi.example.com");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(sent_at("s-1") - *pod(report, "s-0").vanished_at, 1s);
  EXPECT_GE(sent_at("z-0"), *volume(report, "pv-shared").detached_at);
}

TEST_F(VolumeTurns, WhatAPodUsesThatStaysGivesNoTurns) {
  add(a_volume("shared", Json::object(), "ReadWriteMany"));
  add(a_workload("DaemonSet", "logs", 0, mounting({"shared"})));
  for (const char* name : {"s-0", "s-1"}) add(a_pod(name, {.spec = mounting({"shared"})}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-shared").outcome, VolumeOutcome::kept);
  for (const char* name : {"s-0", "s-1"}) EXPECT_LT(evicted_after(name), 1s);
}

TEST_F(VolumeTurns, P9_APodWhoseBudgetIsClosedDoesNotHoldItsDriver) {
  PodSpec protected_pod{.labels = {{"app", "db"}}};
  add_pod_with_volume("a-0", "disks.example.com", protected_pod);
  add(a_budget("db", {{"selector", {{"matchLabels", {{"app", "db"}}}}}, {"minAvailable", 1}}));
  for (const char* name : {"a-1", "a-2"}) add_pod_with_volume(name, "disks.example.com");
  after(5min, [this] { cluster.remove("poddisruptionbudgets", "shop", "db"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(evicted_after("a-1"), 1s);
  expect_one_after_the_other(report, {"a-1", "a-2"});
  EXPECT_GE(evicted_after("a-0"), 4min);
}

TEST_F(VolumeTurns, P9_WhoIsHeldHoldsNoTierAndNoPlaceUp) {
  for (const char* name : {"a-0", "a-1"}) add_pod_with_volume(name, "disks.example.com");
  add_pods(2, {.spec = {{"priority", 1000}}});
  options.max_concurrent = 2;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(evicted_after("web-0"), 1s);
  expect_one_after_the_other(report, {"a-0", "a-1"});
}

TEST_F(VolumeTurns, APodThatDoesNotEndHoldsTheOthersAMinute) {
  add_pod_with_volume("a-0", "disks.example.com", {.annotations = {{"sim.haulout.dev/never-terminates", "true"}}});
  add_pod_with_volume("a-1", "disks.example.com");
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_GE(evicted_after("a-1"), 69s);
  EXPECT_LT(evicted_after("a-1"), 72s);
}

// The pod's containers have ended, and its volume is detached. So the next pod is evicted, although a finalizer still
// holds the first one.
TEST_F(VolumeTurns, APodThatItsFinalizerHoldsHoldsTheOthersNoLonger) {
  add_pod_with_volume("a-0", "disks.example.com", {.metadata = {{"finalizers", {"example.com/hold"}}}});
  add_pod_with_volume("a-1", "disks.example.com");
  options.timeout = 10min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_GE(evicted_after("a-1"), 30s);
  EXPECT_LT(evicted_after("a-1"), 35s);
}

TEST_F(VolumeTurns, ALeakedVolumeHoldsNobody) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  for (const char* name : {"a-0", "a-1"}) add_pod_with_volume(name, "csi.example.com");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(evicted_after("a-0"), 1s);
  expect_one_after_the_other(report, {"a-0", "a-1"});
}

TEST_F(VolumeTurns, TheEndNeedNotBeWaitedFor) {
  for (const char* name : {"a-0", "a-1"}) add_pod_with_volume(name, "disks.example.com");
  options.volumes = VolumeWait::off;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(evicted_after("a-1"), 30s);
  EXPECT_EQ(volume(report, "pv-a-1").outcome, VolumeOutcome::detaching);
}

TEST_F(VolumeTurns, WithoutTheRightsAnAgentSaysSoAndTakesNoTurns) {
  add_three_and_two();
  cluster.forbid("get", "persistentvolumes");
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const char* name : {"a-0", "a-1", "a-2"}) EXPECT_LT(evicted_after(name), 1s);
  EXPECT_TRUE(told.raised("RightMissing"));
}

TEST_F(VolumeTurns, WhoAskedForTurnsIsToldBeforeAnythingIsTouched) {
  for (const auto& [verb, resource] : {std::pair("get", "persistentvolumes"), std::pair("list", "volumeattachments")}) {
    add_pod_with_volume(std::string("a-") + verb, "disks.example.com");
    cluster.forbid(verb, resource);
    options.volumes = VolumeWait::off;
    options.volume_turns = VolumeWait::required;
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::failed)) << resource;
    EXPECT_TRUE(report.connection_failed);
    EXPECT_THAT(evictions(), IsEmpty());
    EXPECT_FALSE(unschedulable());
    cluster.permit(verb, resource);
  }
}

TEST_F(VolumeTurns, AQuestionThatFindsNoAnswerHoldsNobodyForLong) {
  for (const char* name : {"a-0", "a-1"}) add_pod_with_volume(name, "disks.example.com");
  add_pods(1);
  cluster.server().intercept([](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (!call.info || call.info->resource != "persistentvolumes") return std::nullopt;
    sim::StatusBody body;
    body.code = 500;
    body.reason = "InternalError";
    body.message = "etcdserver: request timed out";
    return body.response();
  });
  options.timeout = 5min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained)) << "what has gone is detached, whoever used it";
  EXPECT_LT(evicted_after("web-0"), 1s);
  for (const char* name : {"a-0", "a-1"}) {
    EXPECT_GE(evicted_after(name), drain::VolumeTurns::patience - 1s);
    EXPECT_LT(evicted_after(name), drain::VolumeTurns::patience + 1s);
  }
}

}  // namespace
}  // namespace haulout::scenario
