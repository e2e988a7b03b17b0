// --reattach-limit: the drain waits up to this limit until another node has attached the volumes that were detached
// here.
#include "drain/reattach.hpp"

#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::Reattach;
using drain::VolumeWait;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Reattaching : public Scenario {
 protected:
  Reattaching() { options.reattach_limit = 90s; }
  // Adds a StatefulSet of one pod with the volume pv-NAME. The pod comes back on another node.
  void add_database(const std::string& name) {
    add(a_volume(name));
    Json spec = mounting({name});
    spec["terminationGracePeriodSeconds"] = 5;
    add(a_workload("StatefulSet", name, 1, spec, {{"sim.haulout.dev/prefers-node", "n1"}}));
  }
  void attaching_takes(Duration time) {
    after(0s, [this, time] { cluster.timing().attach = time; });
  }
  // Returns the time of the last event of this type about the volume.
  std::optional<WallTime> told_last(EventType type, const std::string& volume) const {
    std::optional<WallTime> last;
    for (const auto& entry : told.entries)
      if (entry.type == type && entry.volume == volume) last = entry.at;
    return last;
  }
};

TEST_F(Reattaching, TheDrainEndsWhenAnotherNodeHasTheVolume) {
  add_database("db");
  attaching_takes(20s);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  const auto& data = volume(report, "pv-db");
  EXPECT_EQ(data.reattach, Reattach::attached);
  EXPECT_THAT(data.attached_to, AnyOf("n2", "n3"));
  ASSERT_TRUE(data.detached_at);
  const auto attached = told_last(EventType::volume_reattach, "pv-db");
  ASSERT_TRUE(attached);
  EXPECT_GE(*attached - *data.detached_at, 20s);
  EXPECT_LT(report.finished_at - *attached, 1s) << "nothing else was waited for";
}

TEST_F(Reattaching, PastItsLimitThereIsAWarningAndTheNodeIsDrained) {
  add_database("db");
  add_pods(2);
  attaching_takes(1h);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  const auto& data = volume(report, "pv-db");
  EXPECT_EQ(data.reattach, Reattach::late);
  EXPECT_THAT(data.message, AllOf(HasSubstr("is attaching it to node n"), HasSubstr("--reattach-limit")));
  ASSERT_TRUE(data.detached_at);
  EXPECT_GE(report.finished_at - *data.detached_at, 90s);
  EXPECT_LT(report.finished_at - *data.detached_at, 91s);
  EXPECT_EQ(told_last(EventType::volume_reattach, "pv-db"), *data.detached_at + 90s);
}

TEST_F(Reattaching, ItDecidesNothingAboutTheEndBeforeTheDeadline) {
  add_database("db");
  attaching_takes(1h);
  options.reattach_limit = 1h;
  options.timeout = 2min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-db").reattach, Reattach::late);
  EXPECT_GE(took(), 2min - drain::reattach_margin);
  EXPECT_LT(took(), 2min - drain::reattach_margin + 1s);
}

TEST_F(Reattaching, TheDrainDoesNotWaitLongForAnUnschedulablePod) {
  add_database("db");
  after(1s, [this] {
    for (const char* node : {"n2", "n3"}) cluster.cordon(node);
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  const auto& data = volume(report, "pv-db");
  EXPECT_EQ(data.reattach, Reattach::unclaimed);
  ASSERT_TRUE(data.detached_at);
  EXPECT_GE(report.finished_at - *data.detached_at, drain::claim_hold);
  EXPECT_LT(report.finished_at - *data.detached_at, drain::claim_hold + 1s);
}

TEST_F(Reattaching, WhatNothingBringsBackIsNotWaitedFor) {
  add(a_volume("data"));
  add(a_pod("alone", {.grace = 20, .owner_kind = "", .spec = mounting({"data"})}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-data").reattach, Reattach::none);
  EXPECT_LT(took(), 25s);
  EXPECT_EQ(told.count(EventType::volume_reattach), 0u);
}

// A ReadWriteMany volume may be attached to several nodes. Any other node is sufficient.
TEST_F(Reattaching, ASharedVolumeIsThereAlready) {
  add(a_volume("shared", Json::object(), "ReadWriteMany"));
  add(a_pod("here", {.grace = 20, .spec = mounting({"shared"})}));
  add(a_pod("there", {.node = "n2", .spec = mounting({"shared"})}));
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-shared").reattach, Reattach::attached);
  EXPECT_EQ(volume(report, "pv-shared").attached_to, "n2");
  EXPECT_LT(took(), 25s);
}

TEST_F(Reattaching, InTurnsTheNextPodWaitsForItAndPodsWithoutVolumesDoNot) {
  options.volume_turns = VolumeWait::if_permitted;
  for (const char* name : {"a", "b"}) add_database(name);
  add_pods(3);
  attaching_takes(20s);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  const bool a_first = sent_at("a-0") < sent_at("b-0");
  const std::string first = a_first ? "pv-a" : "pv-b", next = a_first ? "b-0" : "a-0";
  const auto attached = told_last(EventType::volume_reattach, first);
  ASSERT_TRUE(attached);
  EXPECT_GE(*attached - volume(report, first).detached_at.value_or(WallTime::max()), 20s);
  EXPECT_GE(sent_at(next), *attached);
  EXPECT_LT(sent_at(next), *attached + 1s);
  for (const char* name : {"web-0", "web-1", "web-2"})
    EXPECT_LT(sent_at(name) - *told.time_of(EventType::cordoned, ""), 1s);
}

TEST_F(Reattaching, InTurnsTheLimitLetsTheNextPodGo) {
  options.volume_turns = VolumeWait::if_permitted;
  for (const char* name : {"a", "b"}) add_database(name);
  attaching_takes(1h);
  options.reattach_limit = 40s;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const char* name : {"pv-a", "pv-b"}) EXPECT_EQ(volume(report, name).reattach, Reattach::late);
  const Duration apart =
      sent_at("a-0") < sent_at("b-0") ? sent_at("b-0") - sent_at("a-0") : sent_at("a-0") - sent_at("b-0");
  EXPECT_GE(apart, 5s + 40s);
  EXPECT_LT(apart, 5s + 45s);
}

class ReattachingOnOff : public Reattaching, public ::testing::WithParamInterface<Duration> {};

TEST_P(ReattachingOnOff, ItCostsNoRequest) {
  options.reattach_limit = GetParam();
  for (const char* name : {"a", "b"}) add_database(name);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(requests("list", "volumeattachments").size(), 2u);
  EXPECT_EQ(requests("watch", "volumeattachments").size(), 1u);
  EXPECT_EQ(requests("get", "persistentvolumes").size(), 2u);
  EXPECT_EQ(requests("get", "persistentvolumeclaims").size(), 0u);
  EXPECT_EQ(told.count(EventType::volume_reattach) != 0, GetParam() != 0s);
  EXPECT_EQ(volume(report, "pv-a").reattach, GetParam() == 0s ? Reattach::none : Reattach::attached);
}

INSTANTIATE_TEST_SUITE_P(, ReattachingOnOff, ::testing::Values(Duration(0s), Duration(90s)),
                         [](const auto& info) { return info.param == 0s ? "Off" : "On"; });

}  // namespace
}  // namespace haulout::scenario
