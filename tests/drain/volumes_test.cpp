#include "drain/volumes.hpp"

#include <gmock/gmock.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr TimePoint start{1h};
constexpr WallTime wall{1h};
const std::string claim = "shop/data";

k8s::VolumeAttachment an_attachment(std::string volume = "pv-data", std::string node = "n1") {
  k8s::VolumeAttachment attachment;
  attachment.name = "csi-" + volume;
  attachment.uid = attachment.name + "-uid";
  attachment.resource_version = "1";
  attachment.node_name = std::move(node);
  attachment.attacher = "csi.example.com";
  attachment.persistent_volume = std::move(volume);
  return attachment;
}

class VolumeBookTest : public ::testing::Test {
 protected:
  void see(const k8s::VolumeAttachment& attachment, const std::string& of_claim = claim) {
    book.attachment_changed(attachment.uid, &attachment, start, wall);
    book.resolved(attachment.persistent_volume, of_claim);
  }
  void gone(const k8s::VolumeAttachment& attachment) {
    book.attachment_changed(attachment.uid, nullptr, start + 1min, wall + 1min);
  }
  VolumeOutcome outcome(const ClaimUse& use, Duration later = 0s) {
    book.look(use, start + later, wall);
    const auto reports = book.reports();
    EXPECT_THAT(reports, SizeIs(1));
    return reports.empty() ? VolumeOutcome::unclear : reports.front().outcome;
  }
  std::vector<std::string> codes(Duration later) const {
    std::vector<DiagnosisFact> facts;
    book.diagnose(start + later, facts);
    std::vector<std::string> result;
    for (const auto& fact : facts) {
      EXPECT_THAT(fact.scope.volumes, ElementsAre("csi-pv-data")) << fact.code;
      EXPECT_EQ(fact.scope.holds, fact.code != "VolumeAttachmentLeaked") << "that one is not waited for";
      result.push_back(fact.code);
    }
    return result;
  }

  std::vector<std::string> told;
  VolumeBook book{"n1", 2min, [this](EventType type, const VolumeReport& volume) {
                    told.push_back(std::string(to_string(type)) + " " + volume.volume);
                  }};
};

struct UseCase {
  const char* what;
  ClaimUse use;
  VolumeOutcome outcome;
  bool holds_up;
};

class VolumeUse : public VolumeBookTest, public ::testing::WithParamInterface<UseCase> {};

TEST_P(VolumeUse, DecidesWhatIsWaitedFor) {
  see(an_attachment());
  EXPECT_EQ(outcome(GetParam().use), GetParam().outcome);
  EXPECT_EQ(book.all_detached(), !GetParam().holds_up);
}

INSTANTIATE_TEST_SUITE_P(
    Uses, VolumeUse,
    ::testing::Values(UseCase{"its pod must leave", {.leaving = {claim}}, VolumeOutcome::in_use, true},
                      UseCase{"its pod has left", {.left = {claim}}, VolumeOutcome::detaching, true},
                      UseCase{"its pod stays", {.staying = {claim}}, VolumeOutcome::kept, false},
                      UseCase{"one leaves, one stays", {{claim}, {claim}, {}}, VolumeOutcome::kept, false},
                      UseCase{"one has left, one stays", {{claim}, {}, {claim}}, VolumeOutcome::kept, false},
                      UseCase{"one has left, one leaves", {{}, {claim}, {claim}}, VolumeOutcome::in_use, true},
                      UseCase{"nobody, for how long?", {}, VolumeOutcome::unclear, true},
                      UseCase{"a claim of another name", {.left = {"shop/other"}}, VolumeOutcome::unclear, true}),
    [](const auto& info) {
      std::string name;
      for (const char c : std::string_view(info.param.what)) name += std::isalpha(c) ? c : '_';
      return name;
    });

TEST_F(VolumeBookTest, WhatNobodyUsesIsLeakedAfterAWhile) {
  see(an_attachment());
  EXPECT_EQ(outcome({}), VolumeOutcome::unclear);
  EXPECT_EQ(book.next_wake(start), start + VolumeBook::leak_hold);
  EXPECT_THAT(codes(0s), IsEmpty());
  EXPECT_FALSE(book.asks_for_node(start));
  EXPECT_EQ(outcome({}, VolumeBook::leak_hold), VolumeOutcome::unclear) << "the Node has not been asked";
  EXPECT_TRUE(book.asks_for_node(start + VolumeBook::leak_hold));
  book.node_holds({}, start + VolumeBook::leak_hold);
  EXPECT_FALSE(book.asks_for_node(start + VolumeBook::leak_hold));
  EXPECT_EQ(outcome({}, VolumeBook::leak_hold), VolumeOutcome::leaked);
  EXPECT_THAT(codes(VolumeBook::leak_hold), ElementsAre("VolumeAttachmentLeaked"));
  EXPECT_TRUE(book.all_detached());
  gone(an_attachment());
  EXPECT_THAT(told, IsEmpty()) << "it was not waited for";
}

// The pods that used the volume were deleted before the drain began. But the Node's status says that the volume is
// still in use, so the drain waits for it.
TEST_F(VolumeBookTest, WhatTheNodeHoldsIsWaitedFor) {
  see(an_attachment());
  outcome({}, 0s);
  book.node_holds({an_attachment().name, "csi-of-another"}, start + VolumeBook::leak_hold);
  EXPECT_EQ(outcome({}, VolumeBook::leak_hold), VolumeOutcome::detaching);
  EXPECT_FALSE(book.all_detached());
  EXPECT_TRUE(book.past_limit(start + 2min));
  book.node_holds({}, start + 3min);
  EXPECT_EQ(outcome({}, 1h), VolumeOutcome::detaching) << "unmounted, and not yet detached";
  gone(an_attachment());
  EXPECT_EQ(book.count(VolumeOutcome::detached), 1u);
}

TEST_F(VolumeBookTest, WhatTheNodeHoldsIsKeptForAPodThatStays) {
  see(an_attachment());
  book.node_holds({an_attachment().name}, start);
  EXPECT_EQ(outcome({.staying = {claim}}), VolumeOutcome::kept);
}

TEST_F(VolumeBookTest, AReadOfTheNodeBeforeTheLastChangeProvesNoLeak) {
  see(an_attachment());
  book.node_holds({}, start);
  outcome({}, 0s);
  EXPECT_EQ(outcome({}, VolumeBook::leak_hold), VolumeOutcome::unclear);
  EXPECT_TRUE(book.asks_for_node(start + VolumeBook::leak_hold));
}

TEST_F(VolumeBookTest, InAResumedRunNothingIsLeaked) {
  book.expect_all();
  see(an_attachment());
  EXPECT_EQ(outcome({}), VolumeOutcome::detaching);
  EXPECT_EQ(outcome({}, 1h), VolumeOutcome::detaching);
}

TEST_F(VolumeBookTest, WhatWasLeakedBeforeIsLeakedInAResumedRun) {
  book.expect_all();
  book.expect_leaked({an_attachment().uid});
  see(an_attachment());
  EXPECT_EQ(outcome({}), VolumeOutcome::leaked);
  EXPECT_TRUE(book.all_detached());
  EXPECT_THAT(codes(0s), ElementsAre("VolumeAttachmentLeaked"));
  see(an_attachment("pv-other"));
  book.look({}, start, wall);
  EXPECT_EQ(book.count(VolumeOutcome::detaching), 1u) << "of this one nobody knows";
  EXPECT_THAT(book.leaked(), ElementsAre(an_attachment().uid));
}

TEST_F(VolumeBookTest, WhatWasLeakedBeforeIsWaitedForOnceAPodHasUsedIt) {
  book.expect_all();
  book.expect_leaked({an_attachment().uid});
  see(an_attachment());
  EXPECT_EQ(outcome({.leaving = {claim}}), VolumeOutcome::in_use);
  EXPECT_THAT(book.leaked(), IsEmpty());
  EXPECT_EQ(outcome({.left = {claim}}), VolumeOutcome::detaching);
  EXPECT_EQ(outcome({}, 1h), VolumeOutcome::detaching);
}

TEST_F(VolumeBookTest, WhatIsLeakedIsRememberedUntilItHasGone) {
  see(an_attachment());
  outcome({});
  EXPECT_THAT(book.leaked(), IsEmpty());
  book.node_holds({}, start + VolumeBook::leak_hold);
  outcome({}, VolumeBook::leak_hold);
  EXPECT_THAT(book.leaked(), ElementsAre(an_attachment().uid));
  gone(an_attachment());
  EXPECT_THAT(book.leaked(), IsEmpty());
}

TEST_F(VolumeBookTest, AVolumeIsUnclearUntilItsClaimIsKnown) {
  const auto attachment = an_attachment();
  book.attachment_changed(attachment.uid, &attachment, start, wall);
  EXPECT_THAT(book.unresolved(), ElementsAre("pv-data"));
  EXPECT_EQ(outcome({.left = {claim}}), VolumeOutcome::unclear);
  EXPECT_EQ(outcome({.left = {claim}}, 1h), VolumeOutcome::unclear);
  EXPECT_FALSE(book.all_detached());
  book.resolved("pv-data", claim);
  EXPECT_THAT(book.unresolved(), IsEmpty());
  EXPECT_EQ(outcome({.left = {claim}}, 1h), VolumeOutcome::detaching);
}

TEST_F(VolumeBookTest, AnInlineVolumeIsReportedOnly) {
  auto attachment = an_attachment("");
  book.attachment_changed(attachment.uid, &attachment, start, wall);
  EXPECT_THAT(book.unresolved(), IsEmpty());
  EXPECT_EQ(outcome({}), VolumeOutcome::inline_volume);
  EXPECT_TRUE(book.all_detached());
}

TEST_F(VolumeBookTest, OtherNodesAreIgnored) {
  see(an_attachment("pv-data", "n2"));
  EXPECT_THAT(book.reports(), IsEmpty());
  EXPECT_TRUE(book.all_detached());
}

TEST_F(VolumeBookTest, OnlyADeletedVolumeAttachmentMeansDetached) {
  auto attachment = an_attachment();
  see(attachment);
  EXPECT_EQ(outcome({.left = {claim}}), VolumeOutcome::detaching);
  attachment.deletion_timestamp = wall;
  see(attachment);
  EXPECT_EQ(outcome({.left = {claim}}, 24h), VolumeOutcome::detaching);
  EXPECT_FALSE(book.all_detached());
  gone(attachment);
  EXPECT_EQ(outcome({.left = {claim}}, 24h), VolumeOutcome::detached);
  EXPECT_TRUE(book.all_detached());
  EXPECT_EQ(book.reports().front().unused_at, wall);
  EXPECT_EQ(book.reports().front().detached_at, wall + 1min);
  EXPECT_THAT(told, ElementsAre("volume-waiting pv-data", "volume-waiting pv-data", "volume-detached pv-data"));
}

TEST_F(VolumeBookTest, ChangesThatAreToldTwiceChangeNothing) {
  see(an_attachment());
  outcome({.left = {claim}});
  see(an_attachment());
  outcome({.left = {claim}});
  gone(an_attachment());
  gone(an_attachment());
  EXPECT_THAT(told, ElementsAre("volume-waiting pv-data", "volume-detached pv-data"));
  EXPECT_EQ(book.count(VolumeOutcome::detached), 1u);
}

TEST_F(VolumeBookTest, TheLimitCountsFromTheLastUser) {
  see(an_attachment());
  outcome({.leaving = {claim}});
  outcome({.left = {claim}}, 10min);
  EXPECT_EQ(book.next_wake(start + 10min), start + 12min);
  EXPECT_EQ(book.past_limit(start + 12min - 1s), std::nullopt);
  EXPECT_THAT(codes(12min - 1s), IsEmpty());
  EXPECT_THAT(book.past_limit(start + 12min).value_or(""),
              ::testing::AllOf(::testing::HasSubstr("PersistentVolume pv-data (claim " + claim + ")"),
                               ::testing::HasSubstr("120 s"), ::testing::HasSubstr("--volume-limit"),
                               ::testing::HasSubstr("volumeattachment " + an_attachment().name)));
  EXPECT_THAT(codes(12min), ElementsAre("VolumeStuck"));
  EXPECT_FALSE(book.all_detached()) << "no time makes it detached";
  outcome({.leaving = {claim}}, 13min);
  EXPECT_EQ(book.past_limit(start + 13min), std::nullopt) << "it is in use again";
}

TEST_F(VolumeBookTest, WithoutALimitNothingIsStuck) {
  VolumeBook patient("n1", 0s, [](EventType, const VolumeReport&) {});
  const auto attachment = an_attachment();
  patient.attachment_changed(attachment.uid, &attachment, start, wall);
  patient.resolved("pv-data", claim);
  patient.look({.left = {claim}}, start, wall);
  EXPECT_EQ(patient.past_limit(start + 24h), std::nullopt);
  EXPECT_EQ(patient.next_wake(start), TimePoint::max());
}

TEST_F(VolumeBookTest, WhatTheDriverSaysIsDiagnosedWhileItIsWaitedFor) {
  auto attachment = an_attachment();
  attachment.detach_error = "device is busy";
  see(attachment);
  outcome({.staying = {claim}});
  EXPECT_THAT(codes(0s), IsEmpty());
  outcome({.left = {claim}});
  EXPECT_THAT(codes(0s), ElementsAre("VolumeDetachError"));
  EXPECT_THAT(book.reports().front().message, ::testing::HasSubstr("device is busy"));
  attachment.detach_error.clear();
  see(attachment);
  outcome({.left = {claim}});
  EXPECT_THAT(codes(0s), IsEmpty());
}

TEST_F(VolumeBookTest, AListFindsWhatHasGone) {
  see(an_attachment());
  outcome({.left = {claim}});
  book.reconcile({an_attachment("pv-other"), an_attachment("pv-elsewhere", "n2")}, start + 1s, start + 2s, wall);
  EXPECT_EQ(book.count(VolumeOutcome::detached), 1u);
  EXPECT_THAT(book.unresolved(), ElementsAre("pv-other"));
}

TEST_F(VolumeBookTest, AListThatIsOlderThanWhatWasSeenTakesNothingAwayAndBringsNothingBack) {
  const auto attachment = an_attachment();
  see(attachment);
  book.reconcile({}, start - 1s, start + 1s, wall);
  EXPECT_EQ(outcome({.left = {claim}}), VolumeOutcome::detaching) << "it was seen after the list was asked for";
  gone(attachment);
  book.reconcile({attachment}, start, start + 2min, wall);
  EXPECT_EQ(outcome({.left = {claim}}), VolumeOutcome::detached) << "its end was seen";
  EXPECT_EQ(book.count(VolumeOutcome::detached), 1u);
}

// Etcd was restored from a backup, so the attachment appears again. The drain waits for it again.
TEST_F(VolumeBookTest, WhatANewListShowsAgainIsAttachedAgain) {
  see(an_attachment());
  outcome({.left = {claim}});
  gone(an_attachment());
  EXPECT_EQ(book.count(VolumeOutcome::detached), 1u);
  book.reconcile({an_attachment()}, start + 1min, start + 2min, wall + 2min);
  EXPECT_TRUE(book.all_detached()) << "no newer than what was heard";
  book.reconcile({an_attachment()}, start + 2min, start + 2min, wall + 2min);
  EXPECT_EQ(outcome({.left = {claim}}, 2min), VolumeOutcome::detaching);
  EXPECT_FALSE(book.all_detached());
  EXPECT_EQ(book.count(VolumeOutcome::detached), 0u);
  book.attachment_changed(an_attachment().uid, nullptr, start + 3min, wall + 3min);
  EXPECT_TRUE(book.all_detached());
  EXPECT_EQ(book.count(VolumeOutcome::detached), 1u);
}

TEST_F(VolumeBookTest, APodThatLeftIsRememberedWhenItIsForgotten) {
  see(an_attachment());
  outcome({.left = {claim}});
  EXPECT_EQ(outcome({}, 1h), VolumeOutcome::detaching) << "a finished pod was deleted by its Job's time to live";
}

TEST_F(VolumeBookTest, WhatIsBeingDetachedIsWaitedForWhoeverUsedIt) {
  auto attachment = an_attachment();
  attachment.deletion_timestamp = wall;
  see(attachment);
  EXPECT_EQ(outcome({}), VolumeOutcome::detaching);
  EXPECT_EQ(outcome({}, 1h), VolumeOutcome::detaching);
}

TEST_F(VolumeBookTest, ThatItIsNoLongerWaitedForIsTold) {
  see(an_attachment());
  outcome({.left = {claim}});
  EXPECT_EQ(book.waiting_since(), start);
  outcome({.staying = {claim}});
  EXPECT_EQ(book.waiting_since(), TimePoint::max());
  EXPECT_THAT(told, SizeIs(2));
}

TEST(ClaimUseTest, FollowsThePods) {
  std::map<std::string, TrackedPod> pods;
  const auto add = [&](const std::string& name, PodState state) -> TrackedPod& {
    TrackedPod& tracked = pods[name];
    tracked.pod = testing::a_pod(name);
    tracked.pod.claims = {name};
    tracked.state = state;
    return tracked;
  };
  add("stays", PodState::left);
  EXPECT_FALSE(any_claim_leaves(pods));
  add("finished", PodState::left).pod.phase = k8s::PodPhase::succeeded;
  add("vanished", PodState::vanished);
  for (const PodState state : {PodState::queued, PodState::in_flight, PodState::terminating, PodState::parked})
    add("leaves-" + std::to_string(static_cast<int>(state)), state);
  const ClaimUse use = claim_use(pods);
  EXPECT_THAT(use.staying, ElementsAre("shop/stays"));
  EXPECT_THAT(use.left, ElementsAre("shop/finished", "shop/vanished"));
  EXPECT_THAT(use.leaving, SizeIs(4));
  EXPECT_TRUE(any_claim_leaves(pods));
}

}  // namespace
}  // namespace haulout::drain
