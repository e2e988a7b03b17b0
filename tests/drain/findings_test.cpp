#include "drain/findings.hpp"

#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using Kind = Inquiries::Kind;
using Question = Inquiries::Question;
using testing::a_budget;
using testing::a_pod;

class InquiriesTest : public testing::PipelineTest {
 protected:
  InquiriesTest() { make(); }

  k8s::PodDisruptionBudget waiting_for_a_replacement() const {
    auto budget = a_budget("web", 0);
    budget.current_healthy = budget.desired_healthy = 2;
    return budget;
  }
  void see(const k8s::PodDisruptionBudget& budget) { pipeline->budget_changed(budget.uid, &budget, now); }
  void pass(Duration time) {
    now += time;
    inquiries.look(*pipeline, now, wall);
  }

  Inquiries inquiries;
  k8s::Pod pod = a_pod("web-0");
  const Question members{Kind::members, "shop-web-uid"};
};

TEST_F(InquiriesTest, NothingIsAskedWhileNothingIsHeld) {
  pod.claims = {"data"};
  plan({pod});
  take();
  pass(1h);
  pass(1h);
  EXPECT_FALSE(inquiries.due(now));
  EXPECT_EQ(inquiries.next_wake(now), TimePoint::max());
}

TEST_F(InquiriesTest, TheOtherPodsOfABudgetOnceItHasHeldOneForAWhile) {
  see(waiting_for_a_replacement());
  plan({pod});
  take();
  pass(0s);
  EXPECT_FALSE(inquiries.due(now));
  EXPECT_EQ(inquiries.next_wake(now), now + 10s);
  pass(10s);
  ASSERT_EQ(inquiries.due(now), members);
  inquiries.known().members[members.id] = {pod};
  inquiries.answered(members, false, false, now);
  EXPECT_FALSE(inquiries.due(now));
  // While the budget still holds the pod, the questions are repeated after pauses that become longer, up to 120 s.
  for (const Duration pause : {30s, 60s, 120s, 120s}) {
    EXPECT_EQ(inquiries.next_wake(now), now + pause);
    pass(pause);
    ASSERT_EQ(inquiries.due(now), members);
    inquiries.answered(members, false, false, now);
  }
  // When the budget allows a disruption, the answers are discarded.
  see(a_budget("web", 1));
  pass(1s);
  EXPECT_TRUE(inquiries.known().members.empty());
  EXPECT_EQ(inquiries.next_wake(now), TimePoint::max());
}

TEST_F(InquiriesTest, ABudgetThatWaitsForNobodyAsksNothing) {
  see(a_budget("web", 0));  // it needs all of its pods
  plan({pod});
  take();
  pass(1min);
  pass(1min);
  EXPECT_FALSE(inquiries.due(now));
}

TEST_F(InquiriesTest, WhatMayNotBeReadIsAskedForTwice) {
  see(waiting_for_a_replacement());
  plan({pod});
  take();
  pass(0s);
  for (int i = 0; i < 2; ++i) {
    pass(1min);
    ASSERT_TRUE(inquiries.due(now)) << "one refusal right after a reconnect proves nothing";
    inquiries.answered(members, true, true, now);
  }
  pass(1h);
  EXPECT_FALSE(inquiries.due(now));
  EXPECT_EQ(inquiries.next_wake(now), TimePoint::max());
}

TEST_F(InquiriesTest, VolumesOfAHeldPodOnceAndItsNamespaceWhenItTakesLongToDie) {
  pod.claims = {"data"};
  plan({pod});
  take();
  refuse(pod, testing::status_error(403, "Forbidden", "pods", "NamespaceTerminating"));
  pass(0s);
  pass(10s);
  const Question volumes{Kind::local_volumes, pod.uid};
  ASSERT_EQ(inquiries.due(now), volumes);
  inquiries.answered(volumes, false, false, now);
  pass(279s);
  EXPECT_FALSE(inquiries.due(now));
  pass(1s);
  EXPECT_EQ(inquiries.due(now), (Question{Kind::ns, "shop"}));
}

TEST_F(InquiriesTest, TheServiceOfAWebhookThatCannotBeCalledWhileItHoldsAPod) {
  plan({pod});
  take();
  refuse(pod, testing::status_error(500, "InternalError", "", "",
                                    "failed calling webhook \"a.example.com\": failed to call webhook: Post "
                                    "\"https://guard.hooks.svc:443/\": EOF"));
  pass(0s);
  EXPECT_FALSE(inquiries.due(now));
  pass(10s);
  const Question service{Kind::service, "hooks/guard"};
  ASSERT_EQ(inquiries.due(now), service);
  inquiries.known().services[service.id] = std::nullopt;
  inquiries.answered(service, false, false, now);
  pass(29s);
  EXPECT_FALSE(inquiries.due(now));
  pass(1s);
  ASSERT_EQ(inquiries.due(now), service) << "it may have been made";
  take();
  accept(pod);
  pass(1s);
  EXPECT_TRUE(inquiries.known().services.empty());
  EXPECT_EQ(inquiries.next_wake(now), TimePoint::max());
}

TEST_F(InquiriesTest, AnAnswerThatComesTooLateIsForgotten) {
  inquiries.known().members[members.id] = {pod};
  inquiries.answered(members, false, false, now);
  EXPECT_TRUE(inquiries.known().members.empty());
}

}  // namespace
}  // namespace haulout::drain
