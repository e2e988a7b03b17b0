// Refusals of evictions by the server's webhooks, policies and plugins.
#include "tests/drain/diagnoses_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::AllOf;
using testing::DiagnosesTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::status_error;
using testing::terminating;

TEST_F(DiagnosesTest, AWebhookThatDeniesIsNamedOnceForAllItsPods) {
  begin();
  const auto other = a_pod("web-1");
  pipeline.pod_changed(other, now);
  const auto denied = status_error(400, "", "", "", "admission webhook \"a.example.com\" denied the request: not yet");
  for (int i = 0; i < 2; ++i) {
    pipeline.take_evictions(now);
    pipeline.answered(pod.uid, Result<>(denied), now, wall);
    pipeline.answered(other.uid, Result<>(denied), now, wall);
    if (i == 0) EXPECT_THAT(codes(), IsEmpty()) << "one denial is its way to say: not yet";
    now += 1min;
  }
  ASSERT_THAT(codes(), ElementsAre("WebhookDenied"));
  const auto fact = diagnose(pipeline, node)[0];
  EXPECT_EQ(fact.subject, "webhook a.example.com");
  EXPECT_THAT(fact.scope.pods, ElementsAre(pod.uid, other.uid));
  EXPECT_THAT(fact.message, ::testing::AllOf(HasSubstr("shop/web-0 and 1 more"), HasSubstr("not yet")));
  pipeline.take_evictions(now);
  pipeline.answered(pod.uid, Result<>(), now, wall);
  pipeline.answered(other.uid, Result<>(), now, wall);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, AWebhookThatCannotBeCalled) {
  begin();
  const auto down = status_error(500, "InternalError", "", "",
                                 "Internal error occurred: failed calling webhook \"a.example.com\": failed to call "
                                 "webhook: Post \"https://a/\": connect: connection refused");
  refuse(down);
  now += 1min;
  refuse(down);
  ASSERT_THAT(codes(), ElementsAre("WebhookDown"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("connection refused"));
  now += 1min;
  refuse(status_error(500, "", "", "", "etcdserver: request timed out"));
  EXPECT_THAT(codes(), IsEmpty()) << "that is another failure";
}

class WebhookServers : public DiagnosesTest {
 protected:
  const std::string behind = "hooks/guard";

  // Returns the diagnosis after two refusals, because one refusal proves nothing.
  std::string told() {
    for (int i = 0; i < 2; ++i) {
      refuse(status_error(500, "InternalError", "", "",
                          "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: "
                          "Post \"https://guard.hooks.svc:443/evict?timeout=10s\": EOF"));
      now += 1min;
    }
    const auto facts = diagnose(pipeline, node, known);
    return facts.size() == 1 && facts[0].code == "WebhookDown" ? facts[0].message : "not told";
  }
  k8s::Pod a_server() {
    auto server = testing::owned_by(a_pod("guard-1", "hooks"), "apps/v1", "ReplicaSet", "guard", "guard-uid");
    server.labels = {{"app", "guard"}};
    return server;
  }
  void guard_is_behind_it() {
    known.services[behind] =
        k8s::Service{"hooks", "guard", "u", k8s::LabelSelector({{"app", k8s::LabelSelector::Operator::in, {"guard"}}})};
  }
  void see(const k8s::Pod& server) {
    begin();
    pipeline.pod_changed(server, now);
  }
};

TEST_F(WebhookServers, AreNotNamedWhereTheServiceMayNotBeRead) {
  begin();
  EXPECT_THAT(told(), AllOf(HasSubstr("check that its server runs, usually pods behind a Service;"),
                            HasSubstr("failurePolicy")));
}

TEST_F(WebhookServers, HaveLeftThisNodeBeforePodsThatTheyJudge) {
  const auto server = a_server();
  see(server);
  guard_is_behind_it();
  pipeline.take_evictions(now);
  pipeline.answered(server.uid, Result<>(), now, wall);
  pipeline.pod_changed(terminating(server), now);
  pipeline.answered(pod.uid, Result<>(Error(Errc::timeout, "the webhook hangs")), now, wall);
  now += 1min;
  EXPECT_THAT(told(), AllOf(HasSubstr("the pods behind its Service hooks/guard run"),
                            HasSubstr("kubectl get pods -n hooks -l 'app=guard' -o wide"),
                            HasSubstr("one of them, pod hooks/guard-1, is terminating on this node"),
                            HasSubstr("haulout.dev/drain-order: \"1\"")));
  pipeline.pod_gone(server.uid, now, wall);
  EXPECT_THAT(told(), HasSubstr("one of them, pod hooks/guard-1, was deleted on this node"));
}

TEST_F(WebhookServers, AreStillHereAndDoNotAnswer) {
  auto server = a_server();
  server.ready = false;
  server.trouble = "CrashLoopBackOff";
  see(server);
  guard_is_behind_it();
  EXPECT_THAT(told(),
              AllOf(HasSubstr("one of them, pod hooks/guard-1, is on this node and is not Ready (CrashLoopBackOff);"),
                    Not(HasSubstr("drain-order"))));
}

TEST_F(WebhookServers, OfAnotherNamespaceOrWithOtherLabelsAreNone) {
  auto elsewhere = a_server();
  elsewhere.ns = "shop";
  see(elsewhere);
  guard_is_behind_it();
  EXPECT_THAT(told(), AllOf(HasSubstr("Service hooks/guard"), Not(HasSubstr("guard-1"))));
}

TEST_F(WebhookServers, OfAServiceThatDoesNotExistOrSelectsNoPods) {
  begin();
  known.services[behind] = std::nullopt;
  EXPECT_THAT(told(), HasSubstr("its Service hooks/guard does not exist"));
  known.services[behind] = k8s::Service{"hooks", "guard", "u", {}};
  EXPECT_THAT(told(), AllOf(HasSubstr("the endpoints of its Service hooks/guard run"), Not(HasSubstr("-l "))));
}

TEST_F(DiagnosesTest, WhateverElseDeniesIsToldAsWell) {
  const struct {
    Error denied;
    const char* subject;
  } rows[] = {
      {status_error(422, "Invalid", "pods", "",
                    "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep-all' denied "
                    "request: not on a Friday"),
       "ValidatingAdmissionPolicy keep"},
      {status_error(403, "Forbidden", "pods", "", "pods \"web-0\" is forbidden: not on a Friday"), "pod shop/web-0"},
      {status_error(403, "Forbidden", "pods", "",
                    "ValidatingAdmissionPolicy 'x\x1b[2J' with binding 'b' denied request: not on a Friday"),
       "pod shop/web-0"},
  };
  begin();
  for (const auto& row : rows) {
    refuse(row.denied);
    now += 1min;
    refuse(row.denied);
    now += 1min;
    ASSERT_THAT(codes(), ElementsAre("AdmissionDenied")) << row.subject;
    const auto fact = diagnose(pipeline, node)[0];
    EXPECT_EQ(fact.subject, row.subject);
    EXPECT_THAT(fact.scope.pods, ElementsAre(pod.uid));
    EXPECT_THAT(fact.message, AllOf(HasSubstr("not on a Friday"), HasSubstr("; ask ")));
  }
  pipeline.take_evictions(now);
  pipeline.answered(pod.uid, Result<>(), now, wall);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, ALostAnswerTakesNoDiagnosisBack) {
  begin();
  const auto denied = status_error(400, "", "", "", "admission webhook \"a.example.com\" denied the request: not yet");
  for (int i = 0; i < 2; ++i) {
    refuse(denied);
    now += 1min;
  }
  ASSERT_THAT(codes(), ElementsAre("WebhookDenied"));
  refuse(Error(Errc::reset, "the connection was closed before the answer came"));
  ASSERT_THAT(codes(), ElementsAre("WebhookDenied")) << "nobody has said that it would let the pod go";
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("not yet"));
}

}  // namespace
}  // namespace haulout::drain
