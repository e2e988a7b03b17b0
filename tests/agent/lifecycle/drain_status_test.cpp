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
  std::string message() const { return status.message(findings); }
  std::string reason() const { return status.reason(findings); }

  Nobody nobody;
  DrainStatus status{nobody, [] {}};
  const std::string node = "n1";
  drain::PodReport pod;
  Findings findings;
};

drain::Diagnosis of_pods(std::string code, std::string subject, std::string message,
                         std::vector<std::string> pods = {"u"}) {
  return {std::move(code), std::move(subject), std::move(message), {}, {.pods = std::move(pods)}};
}

drain::Diagnosis advice(std::string code, std::string subject, std::string message,
                        std::vector<std::string> pods = {}) {
  return {std::move(code), std::move(subject), std::move(message), {}, {.pods = std::move(pods), .holds = false}};
}

TEST_F(DrainStatusTest, ADiagnosisSaysMoreThanThePod) {
  see_pod(EventType::parked);
  EXPECT_EQ(message(), "pod shop/web-0: " + pod.message);
  findings = {of_pods("BudgetNeverAllows", "PodDisruptionBudget shop/web", "it says maxUnavailable: 0; change that",
                      {"v", "u"})};
  EXPECT_EQ(message(), "pod shop/web-0 waits for PodDisruptionBudget shop/web: it says maxUnavailable: 0; change that");
  EXPECT_EQ(reason(), "BlockedByBudget");
  findings = {of_pods("RightMissing", "pod shop/web-0", "grant the verb")};
  EXPECT_EQ(message(), "pod shop/web-0: grant the verb");
  findings.clear();
  EXPECT_EQ(message(), "pod shop/web-0: " + pod.message);
}

// A diagnosis belongs to the pods that it names, although the pods' own messages do not contain its subject.
TEST_F(DrainStatusTest, ADiagnosisIsKnownByThePodsThatItIsAbout) {
  pod.reason = "AdmissionDenied";
  pod.message = "admission webhook \"a.example.com\" denied the request: not yet";
  see_pod(EventType::parked);
  findings = {of_pods("WebhookDenied", "webhook a.example.com", "it denies; ask its owner")};
  EXPECT_EQ(message(), "pod shop/web-0 waits for webhook a.example.com: it denies; ask its owner");
  findings = {of_pods("NamespaceStuckTerminating", "namespace shop", "it does not end; see what is left in it", {"w"})};
  EXPECT_EQ(message(), "pod shop/web-0: " + pod.message) << "it is about another one";
}

TEST_F(DrainStatusTest, WhatNeedsNoEvictionAnyMoreIsNotWhatItWaitsFor) {
  for (const EventType type : {EventType::evicted, EventType::vanished, EventType::terminating, EventType::left}) {
    see_pod(EventType::parked);
    EXPECT_EQ(reason(), "BlockedByBudget");
    see_pod(type);
    EXPECT_EQ(reason(), "Evicting") << drain::to_string(type);
  }
}

TEST_F(DrainStatusTest, WhileOtherNodesAreGivenTimeToHaveAVolumeThatIsSaid) {
  drain::VolumeReport volume;
  volume.volume = "pv-1";
  volume.claim = "shop/data";
  volume.reattach = drain::Reattach::waiting;
  volume.message = "no other node has requested it yet";
  const auto tell = [&] {
    status.on_event(
        {.type = EventType::volume_reattach, .at = {}, .node = node, .message = {}, .progress = {}, .volume = &volume});
  };
  tell();
  EXPECT_EQ(reason(), "ReattachingVolumes");
  EXPECT_EQ(message(),
            "volume pv-1 (claim shop/data) is detached, waiting until another node has attached it: no other node has "
            "requested it yet");
  volume.reattach = drain::Reattach::late;
  tell();
  EXPECT_EQ(reason(), "Evicting");
}

TEST_F(DrainStatusTest, TheDrainKnowsThatItsCordonHasGone) {
  EXPECT_FALSE(uncordoned_meanwhile({of_pods("BudgetNeverAllows", "PodDisruptionBudget shop/web", "it says no")}));
  EXPECT_TRUE(uncordoned_meanwhile({{"Uncordoned", "node n1", "somebody made it schedulable again", {}}}));
}

TEST_F(DrainStatusTest, ADiagnosisOfAnotherBudgetSaysNothingOfThisPod) {
  see_pod(EventType::parked);
  findings = {of_pods("BudgetNeverAllows", "PodDisruptionBudget shop/web2", "it says no", {"w"}),
              {"VolumeAttachmentLeaked",
               "VolumeAttachment csi-1",
               "nobody uses it",
               {},
               {.volumes = {"csi-1"}, .holds = false}}};
  EXPECT_EQ(message(), "pod shop/web-0: " + pod.message);
}

TEST_F(DrainStatusTest, WhatFollowsAfterAnEvictionIsNotWhyThePodWaits) {
  const auto local = advice("LocalVolume", "pod shop/web-0", "its volume exists on this node only", {"u"});
  const std::string beside = "; besides, pod shop/web-0: its volume exists on this node only";
  findings = {local};
  EXPECT_EQ(message(), "no pod that must leave is known yet" + beside);
  see_pod(EventType::parked);
  EXPECT_EQ(message(), "pod shop/web-0: " + pod.message + beside);
  findings = {local, of_pods("BudgetNeverAllows", "PodDisruptionBudget shop/web", "it says no")};
  EXPECT_EQ(message(), "pod shop/web-0 waits for PodDisruptionBudget shop/web: it says no" + beside);
}

TEST_F(DrainStatusTest, OfSeveralFindingsBesideOneIsToldAndTheOthersAreCounted) {
  see_pod(EventType::parked);
  findings = {advice("ClockSkew", "clock", "set it"),
              advice("LocalVolume", "pod shop/web-0", "its volume exists on this node only", {"u"}),
              {"KubeletNotReady", "node n1", "its kubelet is silent", {}}};
  EXPECT_EQ(message(),
            "pod shop/web-0: " + pod.message + "; besides, node n1: its kubelet is silent (and 2 more problems)");
}

class DrainStatusVolumesTest : public DrainStatusTest {
 protected:
  DrainStatusVolumesTest() {
    attach("csi-1", "pv-1");
    attach("csi-2", "pv-2");
  }
  void attach(const std::string& attachment, const std::string& name, const std::string& claim = "shop/data") {
    drain::VolumeReport volume;
    volume.attachment = attachment;
    volume.volume = name;
    volume.claim = claim;
    volume.outcome = drain::VolumeOutcome::detaching;
    volume.message = "csi.example.com is detaching it";
    status.on_event(
        {.type = EventType::volume_waiting, .at = {}, .node = node, .message = {}, .progress = {}, .volume = &volume});
  }
  static drain::Diagnosis of_volume(std::string code, const std::string& attachment) {
    const std::string message = code + " of " + attachment + "; look at its controller";
    return {std::move(code), "PersistentVolume of " + attachment, message, {}, {.volumes = {attachment}}};
  }
};

TEST_F(DrainStatusVolumesTest, AVolumeThatIsStuckIsSomebodysWorkAndComesFirst) {
  EXPECT_EQ(reason(), "DetachingVolumes");
  EXPECT_EQ(message(),
            "volume pv-1 (claim shop/data) is still attached: csi.example.com is detaching it (and 1 more volume)");
  findings = {of_volume("VolumeDetachError", "csi-1")};
  EXPECT_EQ(reason(), "DetachingVolumes") << "the driver tries again by itself";
  EXPECT_EQ(message(),
            "PersistentVolume of csi-1: VolumeDetachError of csi-1; look at its controller (and 1 more volume)");
  findings.push_back(of_volume("VolumeStuck", "csi-2"));
  EXPECT_EQ(reason(), "VolumeStuck");
  EXPECT_EQ(message(), "PersistentVolume of csi-2: VolumeStuck of csi-2; look at its controller (and 1 more volume)");
  see_pod(EventType::parked);
  EXPECT_EQ(reason(), "BlockedByBudget") << "the pods come first";
}

TEST_F(DrainStatusVolumesTest, AVolumeWithoutAClaimHasNone) {
  status.begin();
  attach("csi-3", "pv-3", "");
  EXPECT_EQ(message(), "volume pv-3 is still attached: csi.example.com is detaching it");
}

TEST_F(DrainStatusTest, AVolumeOfWhichNobodyKnowsYetWhoseItIsIsWaitedFor) {
  const auto see = [&](std::size_t vanished, std::size_t unclear) {
    const drain::Progress progress{.to_evict = 3, .vanished = vanished, .unclear = unclear};
    status.on_event({.type = EventType::vanished, .at = {}, .node = node, .message = {}, .progress = progress});
  };
  see(2, 1);
  EXPECT_EQ(reason(), "Evicting");
  EXPECT_EQ(message(), "2 of 3 pods deleted");
  see(3, 1);
  EXPECT_EQ(reason(), "DetachingVolumes");
  EXPECT_EQ(message(), "1 volume is still attached, and it is unknown whether a pod of the node used it");
  findings = {
      {"VolumesUnreadable", "volumes of node n1", "the drain cannot see whether they are detached: timeout", {}}};
  EXPECT_EQ(message(), "volumes of node n1: the drain cannot see whether they are detached: timeout");
  see(3, 0);
  EXPECT_EQ(reason(), "Evicting");
}

TEST_F(DrainStatusTest, AWaitForTheApiServerIsSaidUntilItIsOver) {
  const auto see_plain = [&](EventType type, std::string message) {
    status.on_event({.type = type, .at = {}, .node = node, .message = std::move(message), .progress = {}});
  };
  see_plain(EventType::disconnected, "node n1 could not be cordoned: 500");
  EXPECT_EQ(message(), "node n1 could not be cordoned: 500");
  see_plain(EventType::settling, "");
  EXPECT_EQ(message(), "node n1 could not be cordoned: 500");
  see_plain(EventType::reconnected, "");
  EXPECT_EQ(message(), "no pod that must leave is known yet");
}

// P8: all pods are deleted, but no list confirms that. The reason is ApiUnavailable, and the message says why the list
// failed.
TEST_F(DrainStatusTest, AnEmptyNodeThatIsNotProvedEmptyWaitsForTheApiServer) {
  findings = {{"EmptinessUnproved", "node n1", "its pods could not be listed: 401", {}}};
  EXPECT_EQ(reason(), "ApiUnavailable");
  EXPECT_EQ(message(), "node n1: its pods could not be listed: 401");
}

TEST_F(DrainStatusTest, WhatHoldsTheNodeIsSaidFirstWhenNoPodWaits) {
  findings = {{"KubeletNotReady", "node n1", "its kubelet is silent", {}},
              {"VolumeAttachmentLeaked",
               "VolumeAttachment csi-1",
               "nobody uses it",
               {},
               {.volumes = {"csi-1"}, .holds = false}}};
  EXPECT_EQ(message(), "node n1: its kubelet is silent; besides, VolumeAttachment csi-1: nobody uses it");
  see_pod(EventType::parked);
  EXPECT_EQ(message(), "pod shop/web-0: " + pod.message + "; besides, node n1: its kubelet is silent");
  see_pod(EventType::vanished);
  findings.clear();
  status.begin();
  EXPECT_EQ(message(), "no pod that must leave is known yet");
}

}  // namespace
}  // namespace haulout::agent
