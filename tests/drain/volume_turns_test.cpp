#include "drain/volume_turns.hpp"

#include <gmock/gmock.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {

using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TimePoint start{1h};
constexpr WallTime wall{1h};

// Pods a, b, c with one volume each of the driver "disks", pods x and y with one of the driver "files", and a pod
// without.
class VolumeTurnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) add(name, "disks");
    for (const char* name : {"x", "y"}) add(name, "files");
    track(a_pod("none"));
    look();
  }
  void track(const k8s::Pod& pod, PodState state = PodState::queued) {
    pods[pod.uid].pod = pod;
    pods[pod.uid].state = state;
  }
  // Adds a pod that mounts claim NAME, which is bound to PersistentVolume pv-NAME.
  void add(const std::string& name, const std::string& driver) {
    k8s::Pod pod = a_pod(name);
    pod.claims = {name};
    track(pod);
    attach(name, driver);
    volumes.resolved("pv-" + name, "shop/" + name);
  }
  void attach(const std::string& name, const std::string& driver) {
    k8s::VolumeAttachment attachment;
    attachment.name = "csi-" + name;
    attachment.uid = attachment.name + "-uid";
    attachment.node_name = "n1";
    attachment.attacher = driver;
    attachment.persistent_volume = "pv-" + name;
    volumes.attachment_changed(attachment.uid, &attachment, now, wall);
  }
  void detach(const std::string& name) {
    volumes.attachment_changed("csi-" + name + "-uid", nullptr, now, wall);
    look();
  }
  TrackedPod& tracked(const std::string& name) { return pods.at("shop-" + name + "-uid"); }
  void set(const std::string& name, PodState state) {
    tracked(name).state = state;
    look();
  }
  void look() {
    volumes.look(claim_use(pods), now, wall);
    turns.look(pods, now);
  }
  std::string held(const std::string& name) {
    const auto hold = turns.held(tracked(name).pod, now);
    EXPECT_TRUE(!hold || hold->reason == "VolumesInTurn");
    return hold ? hold->message : "";
  }

  TimePoint now = start;
  std::map<std::string, TrackedPod> pods;
  VolumeBook volumes{"n1", 2min, [](EventType, const VolumeReport&) {}};
  VolumeTurns turns{volumes};
};

TEST_F(VolumeTurnsTest, NoPodWaitsBeforeTheFirstEviction) {
  for (const char* name : {"a", "b", "c", "x", "y", "none"}) EXPECT_EQ(held(name), "") << name;
}

struct StateCase {
  PodState state;
  bool has_the_turn;
};

class VolumeTurnStates : public VolumeTurnsTest, public ::testing::WithParamInterface<StateCase> {};

TEST_P(VolumeTurnStates, OnlyATerminatingPodHasTheTurn) {
  set("a", GetParam().state);
  EXPECT_EQ(held("b") != "", GetParam().has_the_turn);
  if (GetParam().state != PodState::vanished) EXPECT_EQ(held("a"), "") << "its own turn";
  EXPECT_EQ(held("x"), "") << "another driver";
  EXPECT_EQ(held("none"), "") << "no volume";
}

INSTANTIATE_TEST_SUITE_P(States, VolumeTurnStates,
                         ::testing::Values(StateCase{PodState::left, false}, StateCase{PodState::queued, false},
                                           StateCase{PodState::in_flight, true}, StateCase{PodState::terminating, true},
                                           StateCase{PodState::parked, false},
                                           // The pod's volume is still being detached.
                                           StateCase{PodState::vanished, true}));

TEST_F(VolumeTurnsTest, TheMessageNamesDriverAndPodThenVolume) {
  set("a", PodState::terminating);
  EXPECT_THAT(held("b"), AllOf(HasSubstr("disks"), HasSubstr("pod shop/a"), HasSubstr("--serialize-volumes")));
  set("a", PodState::vanished);
  EXPECT_THAT(held("b"), AllOf(HasSubstr("disks"), HasSubstr("PersistentVolume pv-a")));
  detach("a");
  EXPECT_EQ(held("b"), "");
}

TEST_F(VolumeTurnsTest, EachIsToldOfTheOneBeforeItSoThatNotEachTurnIsNewsForAll) {
  set("a", PodState::in_flight);
  const std::string of_b = held("b"), of_c = held("c");
  EXPECT_THAT(of_b, HasSubstr("pod shop/a"));
  EXPECT_THAT(of_c, HasSubstr("pod shop/b"));
  EXPECT_EQ(held("b"), of_b) << "asked twice";
  set("a", PodState::vanished);
  held("b");
  EXPECT_EQ(held("c"), of_c);
  detach("a");
  set("b", PodState::in_flight);
  EXPECT_EQ(held("c"), of_c);
}

TEST_F(VolumeTurnsTest, APodHasTheTurnFromItsRequestUntilARefusal) {
  turns.leaving(tracked("a").pod, EvictionGuard::Leaves::yes);
  EXPECT_NE(held("b"), "");
  turns.leaving(tracked("a").pod, EvictionGuard::Leaves::no);
  EXPECT_EQ(held("b"), "");
  turns.leaving(tracked("a").pod, EvictionGuard::Leaves::yes);
  turns.leaving(tracked("a").pod, EvictionGuard::Leaves::perhaps);
  EXPECT_EQ(held("b"), "") << "its answer was lost: it waits like any other";
  turns.leaving(tracked("none").pod, EvictionGuard::Leaves::yes);
  EXPECT_EQ(held("b"), "");
}

TEST_F(VolumeTurnsTest, ADeletedPodKeepsTheTurnUntilItsVolumesWereChecked) {
  set("a", PodState::terminating);
  tracked("a").state = PodState::vanished;
  turns.leaving(tracked("a").pod, EvictionGuard::Leaves::yes);
  EXPECT_NE(held("b"), "");
  look();
  EXPECT_NE(held("b"), "") << "now for its volume";
}

TEST_F(VolumeTurnsTest, APodThatDoesNotEndBlocksTheOthersForALimitedTime) {
  set("a", PodState::terminating);
  EXPECT_NE(held("b"), "");
  tracked("a").stuck = true;
  look();
  EXPECT_EQ(held("b"), "");
}

TEST_F(VolumeTurnsTest, AStuckVolumeHoldsNobody) {
  set("a", PodState::vanished);
  now += 2min - 1s;
  look();
  EXPECT_NE(held("b"), "");
  now += 1s;
  look();
  EXPECT_EQ(held("b"), "");
}

TEST_F(VolumeTurnsTest, ALeakedVolumeHoldsNobody) {
  attach("old", "disks");
  volumes.resolved("pv-old", "shop/old");
  look();
  EXPECT_EQ(held("a"), "");
  now += VolumeBook::leak_hold;
  volumes.node_holds({}, now);
  look();
  ASSERT_EQ(volumes.count(VolumeOutcome::leaked), 1u);
  EXPECT_EQ(held("a"), "");
}

TEST_F(VolumeTurnsTest, ASharedVolumeIsDetachedAfterTheLastOfItsPods) {
  tracked("b").pod.claims = {"a"};
  detach("b");
  set("a", PodState::vanished);
  EXPECT_EQ(held("b"), "") << "its own volume is what the other one used";
  EXPECT_EQ(held("c"), "") << "nothing is being detached";
  set("b", PodState::vanished);
  EXPECT_NE(held("c"), "");
}

TEST_F(VolumeTurnsTest, AVolumeThatAPodKeepsGivesNoTurns) {
  k8s::Pod stays = a_pod("stays");
  stays.claims = {"a"};
  track(stays, PodState::left);
  set("a", PodState::terminating);
  EXPECT_EQ(held("b"), "") << "nothing will be detached when a goes";
  set("a", PodState::queued);
  set("b", PodState::terminating);
  EXPECT_EQ(held("a"), "");
  set("a", PodState::vanished);
  set("b", PodState::queued);
  EXPECT_EQ(held("b"), "");
}

TEST_F(VolumeTurnsTest, APodWithVolumesOfTwoDriversNeedsBothTurns) {
  tracked("a").pod.claims = {"a", "x"};
  set("y", PodState::in_flight);
  EXPECT_THAT(held("a"), HasSubstr("files"));
  EXPECT_EQ(held("b"), "") << "who waits holds nobody";
  set("y", PodState::queued);
  set("a", PodState::in_flight);
  EXPECT_THAT(held("b"), HasSubstr("disks"));
  EXPECT_THAT(held("y"), HasSubstr("files"));
}

TEST_F(VolumeTurnsTest, APodWaitsForALimitedTimeUntilItsVolumesAreKnown) {
  attach("new", "disks");
  k8s::Pod late = a_pod("late");
  late.claims = {"new"};
  track(late);
  look();
  const auto hold = turns.held(late, now);
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->reason, "VolumesInTurn");
  EXPECT_EQ(hold->until, now + VolumeTurns::patience);
  EXPECT_EQ(held("a"), "") << "all of its volumes are known";
  EXPECT_EQ(held("none"), "");
  now += VolumeTurns::patience;
  look();
  EXPECT_FALSE(turns.held(late, now));
  volumes.resolved("pv-new", "shop/new");
  set("a", PodState::in_flight);
  EXPECT_THAT(held("late"), HasSubstr("pod shop/a"));
}

TEST_F(VolumeTurnsTest, NothingAttachedNobodyHeld) {
  detach("a");
  set("b", PodState::in_flight);
  EXPECT_EQ(held("a"), "");
}

TEST_F(VolumeTurnsTest, WhereVolumesCannotBeSeenNobodyIsHeld) {
  set("a", PodState::in_flight);
  turns.stop();
  turns.leaving(tracked("a").pod, EvictionGuard::Leaves::yes);
  EXPECT_EQ(held("b"), "");
}

TEST_F(VolumeTurnsTest, TheTurnLastsUntilAnotherNodeHasTheVolume) {
  VolumeBook book("n1", 2min, [](EventType, const VolumeReport&) {}, 90s);
  VolumeTurns turns_there(book);
  const auto attachment = [](const std::string& name, const std::string& node) {
    k8s::VolumeAttachment result;
    result.uid = name + node;
    result.node_name = node;
    result.attacher = "disks";
    result.persistent_volume = "pv-" + name;
    result.attached = true;
    return result;
  };
  const auto look_there = [&] {
    book.look(claim_use(pods), now, wall);
    turns_there.look(pods, now);
  };
  for (const char* name : {"a", "b"}) {
    const auto here = attachment(name, "n1");
    book.resolved("pv-" + std::string(name), "shop/" + std::string(name));
    book.attachment_changed(here.uid + "-2", &here, now, wall);
  }
  tracked("a").pod = testing::owned_by(tracked("a").pod, "apps/v1", "StatefulSet", "a", "a-uid");
  tracked("a").state = PodState::vanished;
  look_there();
  book.attachment_changed("an1-2", nullptr, now, wall);
  look_there();
  const auto hold = turns_there.held(tracked("b").pod, now);
  ASSERT_TRUE(hold);
  EXPECT_THAT(hold->message, AllOf(HasSubstr("pv-a"), HasSubstr("--reattach-limit")));
  EXPECT_FALSE(turns_there.held(tracked("none").pod, now));
  const auto elsewhere = attachment("a", "n2");
  book.attachment_changed(elsewhere.uid, &elsewhere, now, wall);
  look_there();
  EXPECT_FALSE(turns_there.held(tracked("b").pod, now));
}

}  // namespace
}  // namespace haulout::drain
