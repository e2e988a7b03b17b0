// Ending: how a drain has ended. The rest of Session is tested by the scenarios.
#include "drain/session.hpp"

#include <gmock/gmock.h>

#include "tests/support/virtual_time.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;

class EndingTest : public testing::VirtualTimeTest {
 protected:
  Report report() const {
    Report report;
    ending.write_to(report);
    return report;
  }
  static Error answered(int code, std::string reason, bool structured = true) {
    Error error(Errc::status, reason);
    error.peer = PeerStatus{code, reason, "", {}, {}, {}, {}, structured};
    return error;
  }
  Ending ending{clock};
};

TEST_F(EndingTest, P4_WhatHasNotEndedIsNoSuccess) {
  EXPECT_FALSE(ending.has_come());
  EXPECT_EQ(report().outcome, Outcome::cancelled);
}

TEST_F(EndingTest, EachWayToEndSaysThatTheDrainDoesNotGoOn) {
  EXPECT_FALSE(ending.end(Outcome::drained, "drained"));
  EXPECT_TRUE(ending.is(Outcome::drained));
  EXPECT_FALSE(ending.give_up(Error(Errc::timeout, "no answer"), "the pods could not be listed"));
  EXPECT_EQ(report().message, "the deadline passed: the pods could not be listed: no answer") << "the last call counts";
}

TEST_F(EndingTest, GivingUpIsBlockedOnlyIfWaitingMightHaveHelped) {
  ending.give_up(answered(503, "ServiceUnavailable"), "what");
  EXPECT_EQ(report().outcome, Outcome::blocked);
  EXPECT_FALSE(report().error);
  ending.give_up(answered(403, "Forbidden"), "what");
  EXPECT_EQ(report().outcome, Outcome::failed);
  EXPECT_TRUE(report().error);
}

TEST_F(EndingTest, AMissingRightIsAFailureOfTheConnectionAndNamesTheRemedy) {
  k8s::ResourceAttributes right;
  right.verb = "create";
  right.resource = "pods";
  right.subresource = "eviction";
  right.ns = "shop";
  ending.lacks_right("n1", right, "evict pods");
  EXPECT_TRUE(report().connection_failed);
  EXPECT_THAT(report().message, ::testing::HasSubstr("in namespace shop: grant verb create on resource pods/eviction"));
}

TEST_F(EndingTest, AnAnswerOfKubernetesAboutTheClusterIsNoFailureOfTheConnection) {
  ending.fail(answered(422, "Invalid"), "what");
  EXPECT_FALSE(report().connection_failed);
  ending.fail(answered(404, "Not Found", false), "what");
  EXPECT_TRUE(report().connection_failed) << "such an endpoint is no API server";
}

}  // namespace
}  // namespace haulout::drain
