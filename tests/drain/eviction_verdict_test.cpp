#include "drain/eviction_verdict.hpp"

#include <gtest/gtest.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::status_error;
using V = EvictionVerdict;

Error text_error(int code, std::string message) {
  Error error = status_error(code, "", "", "", std::move(message));
  error.peer->structured = false;
  return error;
}

Error after(std::chrono::seconds pause, Error error) {
  error.retry_after = pause;
  return error;
}

// The answers of an API server are those of a real kube-apiserver 1.36.3. Other rows are answers of proxies, and
// failures without an answer.
TEST(EvictionVerdict, TableOfAnswers) {
  const struct {
    const char* what;
    Error error;
    V verdict;
  } rows[] = {
      {"closed budget", status_error(429, "TooManyRequests", "", "DisruptionBudget"), V::budget},
      {"flow control", text_error(429, "Too many requests, please try again later."), V::throttle},
      {"shutting down", text_error(429, "The apiserver is shutting down, please try again later."), V::throttle},
      {"webhook with 429", status_error(429, "", "", "", "migrating"), V::admission},
      {"webhook with 429 that says when",
       after(20s, status_error(429, "", "", "", "admission webhook \"a.example.com\" denied the request: migrating")),
       V::admission},
      {"closed budget that says when", after(10s, status_error(429, "TooManyRequests", "", "DisruptionBudget")),
       V::budget},
      {"a cache that is not filled yet",
       after(1s, status_error(429, "TooManyRequests", "", "", "storage is (re)initializing")), V::throttle},
      {"policy denies with 413",
       status_error(413, "RequestEntityTooLarge", "pods", "",
                    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'b' denied request: no"),
       V::admission},
      {"policy denies with 401",
       status_error(401, "Unauthorized", "pods", "",
                    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'b' denied request: no"),
       V::admission},
      {"a body that is too large", status_error(413, "RequestEntityTooLarge"), V::fatal},
      {"pod gone", status_error(404, "NotFound", "pods"), V::gone},
      {"pod gone, kubelet identity", status_error(404, "NotFound", "pod"), V::gone},
      {"namespace gone", status_error(404, "NotFound", "namespaces"), V::gone},
      {"a proxy that wants to know who asks", text_error(401, "Authorization required"), V::throttle},
      {"a proxy without a backend", text_error(404, "default backend - 404"), V::retry},
      {"a proxy that knows no such method", text_error(501, ""), V::retry},
      {"webhook denies with 503", status_error(503, "", "", "", "admission webhook \"x\" denied the request: busy"),
       V::admission},
      {"other UID", status_error(409, "Conflict", "Pod"), V::replaced},
      {"budget conflict", status_error(409, "Conflict", "poddisruptionbudgets"), V::retry},
      {"two budgets",
       status_error(500, "", "", "",
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                    "support."),
       V::overlap},
      {"webhook down", status_error(500, "InternalError", "", "", "failed calling webhook"), V::retry},
      {"webhook denies", status_error(400, "", "", "", "admission webhook \"a.example.com\" denied the request: no"),
       V::admission},
      {"malformed", status_error(400, "BadRequest"), V::fatal},
      {"policy denies", status_error(422, "Invalid", "pods"), V::admission},
      {"dying namespace", status_error(403, "Forbidden", "pods", "NamespaceTerminating"), V::ns_terminating},
      {"too many disrupted", status_error(403, "Forbidden", "poddisruptionbudget"), V::budget},
      {"too many disrupted, in Kubernetes 1.37",
       status_error(403, "Forbidden", "poddisruptionbudget", "DisruptionBudget"), V::budget},
      {"on another node",
       status_error(403, "Forbidden", "pods", "",
                    "pods \"a\" is forbidden: node k1 can only evict pods with spec.nodeName set to itself"),
       V::replaced},
      {"on another node, by the policy that comes with agents",
       status_error(403, "Forbidden", "pods", "",
                    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'haulout-own-pods' with binding "
                    "'haulout-own-pods' denied request: not on its node"),
       V::replaced},
      {"rbac",
       status_error(403, "Forbidden", "pods", "",
                    "pods \"a\" is forbidden: User \"u\" cannot create resource \"pods/eviction\" in API group \"\" in "
                    "the namespace \"shop\""),
       V::forbidden},
      {"webhook denies with 403",
       status_error(403, "Forbidden", "", "", "admission webhook \"x\" denied the request: no"), V::admission},
      {"unauthorized", status_error(401, "Unauthorized"), V::throttle},
      {"going down", status_error(503, "ServiceUnavailable"), V::throttle},
      {"timeout", text_error(504, "Timeout"), V::retry},
      {"gateway", text_error(502, "<html>"), V::retry},
      {"not supported", status_error(405, "MethodNotAllowed"), V::fatal},
      {"refused", Error(Errc::unreachable, ""), V::throttle},
      {"reset", Error(Errc::reset, ""), V::retry},
      {"silence", Error(Errc::timeout, ""), V::retry},
      {"html", Error(Errc::decode, ""), V::retry},
  };
  for (const auto& row : rows) EXPECT_EQ(classify_eviction(row.error), row.verdict) << row.what;
}

TEST(P10_KindToTheApiServer, NoVerdictIsRetriedWithoutDelay) {
  SeededRng rng(1);
  for (auto verdict : {V::gone, V::budget, V::overlap, V::admission, V::ns_terminating, V::throttle, V::retry,
                       V::replaced, V::forbidden, V::fatal}) {
    Backoff backoff(backoff_after(verdict));
    for (int i = 0; i < 50; ++i) EXPECT_GE(backoff.next(rng), Backoff::minimum);
  }
}

TEST(EvictionVerdict, TheServiceOfAWebhookThatCouldNotBeCalled) {
  const struct {
    const char* url;
    const char* service;
  } rows[] = {
      {"https://guard.hooks.svc:443/evict?timeout=10s", "hooks/guard"},
      {"https://guard.hooks.svc/evict", "hooks/guard"},
      {"https://guard.hooks.svc", "hooks/guard"},
      {"https://guard.hooks.example.com:443/", ""},
      {"https://127.0.0.1:8443/", ""},
      {"https://guard.svc:443/", ""},
      {"https://.hooks.svc:443/", ""},
      {"https://guard..svc:443/", ""},
      {"https://a.guard.hooks.svc:443/", ""},
      {"https://.svc", ""},
      {"https://guard%2F..hooks.svc:443/", ""},
      {"http://guard.hooks.svc:443/", ""},
      {"https://", ""},
  };
  const auto refusal = [](const std::string& message) {
    return webhook_refusal(status_error(500, "InternalError", "", "", message));
  };
  const std::string failed =
      "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: ";
  for (const auto& row : rows) {
    const auto down = refusal(failed + "Post \"" + row.url + "\": EOF");
    ASSERT_TRUE(down) << row.url;
    EXPECT_TRUE(down->down);
    EXPECT_EQ(down->service, row.service) << row.url;
  }
  EXPECT_EQ(refusal(failed + "expected webhook response of admission.k8s.io/v1")->service, "");
  EXPECT_EQ(refusal(failed + "Post \"https://guard.hooks.svc")->service, "hooks/guard") << "cut short";
  const auto denied = webhook_refusal(status_error(400, "", "", "",
                                                   "admission webhook \"a.example.com\" denied the "
                                                   "request: Post \"https://guard.hooks.svc/\""));
  ASSERT_TRUE(denied);
  EXPECT_EQ(denied->service, "") << "whoever denies was called";
}

}  // namespace
}  // namespace haulout::drain
