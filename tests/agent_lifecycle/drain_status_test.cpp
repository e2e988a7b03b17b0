#include "agent/lifecycle/drain_status.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {
using drain::EventType;

class Nobody final : public drain::DrainObserver {
 public:
  void on_event(const drain::Event&) override {}
};

class DrainStatusTest : public ::testing::Test {
 protected:
  DrainStatusTest() {
    pod.ns = "shop";
    pod.name = "web-0";
    pod.uid = "u";
    pod.reason = "BlockedByBudget";
    pod.message = "blocked by PodDisruptionBudget shop/web: needs 3 healthy, has 3";
  }
  void see_pod(EventType type) {
    status.on_event({.type = type, .at = {}, .node = node, .pod = &pod, .message = {}, .progress = {}});
  }
  void see(EventType type, const drain::Diagnosis& diagnosis) {
    status.on_event({.type = type, .at = {}, .node = node, .diagnosis = &diagnosis, .message = {}, .progress = {}});
  }

  Nobody nobody;
  DrainStatus status{nobody, [] {}};
  const std::string node = "n1";
  drain::PodReport pod;
};

TEST_F(DrainStatusTest, ADiagnosisSaysMoreThanThePod) {
  see_pod(EventType::parked);
  EXPECT_EQ(status.message(), "pod shop/web-0: " + pod.message);
  const drain::Diagnosis zero{"PDB_ZERO", "PodDisruptionBudget shop/web", "it says maxUnavailable: 0; change that", {}};
  see(EventType::diagnosis_raised, zero);
  EXPECT_EQ(status.message(),
            "pod shop/web-0 waits for PodDisruptionBudget shop/web: it says maxUnavailable: 0; change that");
  EXPECT_EQ(status.reason(), "BlockedByBudget");
  see(EventType::diagnosis_withdrawn, zero);
  EXPECT_EQ(status.message(), "pod shop/web-0: " + pod.message);
}

TEST_F(DrainStatusTest, WhatNeedsNoEvictionAnyMoreIsNotWhatItWaitsFor) {
  for (const EventType type : {EventType::evicted, EventType::vanished, EventType::terminating, EventType::left}) {
    see_pod(EventType::parked);
    EXPECT_EQ(status.reason(), "BlockedByBudget");
    see_pod(type);
    EXPECT_EQ(status.reason(), "Evicting") << drain::to_string(type);
  }
}

TEST_F(DrainStatusTest, WhileOtherNodesAreGivenTimeToHaveAVolumeThatIsSaid) {
  drain::VolumeReport volume;
  volume.volume = "pv-1";
  volume.claim = "shop/data";
  volume.reattach = drain::Reattach::waiting;
  volume.message = "no other node has asked for it yet";
  const auto tell = [&] {
    status.on_event(
        {.type = EventType::volume_reattach, .at = {}, .node = node, .message = {}, .progress = {}, .volume = &volume});
  };
  tell();
  EXPECT_EQ(status.reason(), "ReattachingVolumes");
  EXPECT_EQ(status.message(),
            "volume pv-1 (claim shop/data) is detached, and waited for until another node has it: no other node has "
            "asked for it yet");
  volume.reattach = drain::Reattach::late;
  tell();
  EXPECT_EQ(status.reason(), "Evicting");
}

TEST_F(DrainStatusTest, TheDrainKnowsThatItsCordonHasGone) {
  EXPECT_FALSE(status.uncordoned_meanwhile());
  const drain::Diagnosis lost{"UNCORDONED_MEANWHILE", "node n1", "somebody made the node schedulable again", {}};
  see(EventType::diagnosis_raised, lost);
  EXPECT_TRUE(status.uncordoned_meanwhile());
  see(EventType::diagnosis_withdrawn, lost);
  EXPECT_FALSE(status.uncordoned_meanwhile());
}

TEST_F(DrainStatusTest, ADiagnosisOfAnotherBudgetSaysNothingOfThisPod) {
  see_pod(EventType::parked);
  see(EventType::diagnosis_raised, {"PDB_ZERO", "PodDisruptionBudget shop/web2", "it says no", {}});
  see(EventType::diagnosis_raised, {"VA_LEAKED", "VolumeAttachment csi-1", "nobody uses it", {}});
  EXPECT_EQ(status.message(), "pod shop/web-0: " + pod.message);
}

TEST_F(DrainStatusTest, WhatFollowsAfterAnEvictionIsNotWhyThePodWaits) {
  see(EventType::diagnosis_raised, {"LOCAL_PV", "pod shop/web-0", "its volume exists on this node only", {}});
  EXPECT_EQ(status.message(), "looking for pods that must leave");
  see_pod(EventType::parked);
  EXPECT_EQ(status.message(), "pod shop/web-0: " + pod.message);
  see(EventType::diagnosis_raised, {"PDB_ZERO", "PodDisruptionBudget shop/web", "it says no", {}});
  EXPECT_EQ(status.message(), "pod shop/web-0 waits for PodDisruptionBudget shop/web: it says no");
  see(EventType::diagnosis_withdrawn, {"PDB_ZERO", "PodDisruptionBudget shop/web", "it says no", {}});
  see(EventType::diagnosis_raised, {"RBAC_DENIED", "pod shop/web-0", "grant the verb", {}});
  EXPECT_EQ(status.message(), "pod shop/web-0: grant the verb");
}

TEST_F(DrainStatusTest, AWaitForTheApiServerIsSaidUntilItIsOver) {
  const auto see_plain = [&](EventType type, std::string message) {
    status.on_event({.type = type, .at = {}, .node = node, .message = std::move(message), .progress = {}});
  };
  see_plain(EventType::disconnected, "node n1 could not be cordoned: 500");
  EXPECT_EQ(status.message(), "node n1 could not be cordoned: 500");
  see_plain(EventType::settling, "");
  EXPECT_EQ(status.message(), "node n1 could not be cordoned: 500");
  see_plain(EventType::reconnected, "");
  EXPECT_EQ(status.message(), "looking for pods that must leave");
}

TEST_F(DrainStatusTest, WhatHoldsTheNodeIsSaidWhenNoPodWaits) {
  see(EventType::diagnosis_raised, {"VA_LEAKED", "VolumeAttachment csi-1", "nobody uses it", {}});
  EXPECT_EQ(status.message(), "looking for pods that must leave");
  see(EventType::diagnosis_raised, {"NODE_NOT_READY", "node n1", "its kubelet is silent", {}});
  EXPECT_EQ(status.message(), "node n1: its kubelet is silent");
  see_pod(EventType::parked);
  EXPECT_EQ(status.message(), "pod shop/web-0: " + pod.message);
  see_pod(EventType::vanished);
  status.begin();
  EXPECT_EQ(status.message(), "looking for pods that must leave");
}

}  // namespace
}  // namespace haulout::agent
