#include "k8s/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/k8s/fixtures.hpp"
#include "tests/support/scripted_transport.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

http::Response response(int status, const char* type, std::string body) {
  http::Response out;
  out.status = status;
  out.headers.set("Content-Type", type);
  out.body = std::move(body);
  return out;
}

Error failure(int status, std::string body) {
  const auto error = failure_of(json_response(status, std::move(body)), WallTime());
  EXPECT_TRUE(error);
  return error.value_or(Error());
}

struct Case {
  const char* name;
  int code;
  std::string body;
  const char* reason;
  // Names of the predicates that hold.
  std::string traits;
};

std::string traits(const Error& error) {
  std::string out;
  const auto note = [&](bool holds, const char* name) {
    if (holds) out += std::string(out.empty() ? "" : " ") + name;
  };
  note(is_not_found(error), "not-found");
  note(is_conflict(error), "conflict");
  note(is_expired(error), "expired");
  note(is_forbidden(error), "forbidden");
  note(is_denied_by_rbac(error), "rbac");
  note(is_unauthorized(error), "unauthorized");
  note(is_too_many_requests(error), "too-many");
  note(is_transient(error), "transient");
  return out;
}

TEST(Status, WhatTheServerSays) {
  const std::vector<Case> cases = {
      {"budget", 429, fixtures::budget, "TooManyRequests", "too-many transient"},
      {"wrong uid", 409, fixtures::wrong_uid, "Conflict", "conflict"},
      {"gone", 404, fixtures::pod_gone, "NotFound", "not-found"},
      {"namespace dying", 403, fixtures::namespace_dying, "Forbidden", "forbidden"},
      {"rbac", 403, fixtures::rbac, "Forbidden", "forbidden rbac"},
      {"node restriction", 403, fixtures::node_restriction, "Forbidden", "forbidden"},
      {"unauthorized", 401, fixtures::unauthorized, "Unauthorized", "unauthorized"},
      {"webhook", 400, fixtures::webhook_denied, "", ""},
      {"two budgets", 500, fixtures::two_budgets, "", "transient"},
      {"expired", 410, fixtures::expired_list, "Expired", "expired"},
      {"future", 504, fixtures::future_list, "Timeout", "transient"},
      {"shutting down", 503, fixtures::shutting_down, "ServiceUnavailable", "transient"},
      {"webhook that quotes an authorizer", 403,
       fixtures::failure(
           R"("message":"admission webhook \"w\" denied the request: forbidden: User \"u\" cannot x","reason":"Forbidden","code":403)"),
       "Forbidden", "forbidden"},
      {"non-resource path", 403,
       fixtures::failure(
           R"("message":"forbidden: User \"system:anonymous\" cannot get path \"/x\"","reason":"Forbidden","details":{},"code":403)"),
       "Forbidden", "forbidden rbac"},
      {"impersonation", 403,
       fixtures::failure(
           R"("message":"users \"system:node:v1\" is forbidden: User \"system:serviceaccount:h:i\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope","reason":"Forbidden","details":{"name":"system:node:v1","kind":"users"},"code":403)"),
       "Forbidden", "forbidden rbac"},
      {"already exists is no conflict", 409,
       fixtures::failure(R"("message":"leases \"x\" already exists","reason":"AlreadyExists","code":409)"),
       "AlreadyExists", ""},
      {"not implemented", 501, fixtures::failure(R"("message":"no","code":501)"), "", ""},
  };
  for (const auto& c : cases) {
    const auto error = failure(c.code, c.body);
    ASSERT_EQ(error.code(), Errc::status) << c.name;
    ASSERT_TRUE(error.peer) << c.name;
    EXPECT_TRUE(error.peer->structured) << c.name;
    EXPECT_EQ(error.peer->code, c.code) << c.name;
    EXPECT_EQ(error.peer->reason, c.reason) << c.name;
    EXPECT_EQ(traits(error), c.traits) << c.name;
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(c.code))) << c.name;
    EXPECT_THAT(error.message(), HasSubstr(error.peer->message)) << c.name;
  }
}

TEST(Status, KeepsDetails) {
  const auto error = failure(403, fixtures::namespace_dying);
  EXPECT_EQ(error.peer->kind, "pods");
  EXPECT_EQ(error.peer->name, "d");
  ASSERT_TRUE(error.peer->has_cause("NamespaceTerminating"));
  EXPECT_EQ(error.peer->causes.front().field, "metadata.namespace");
  EXPECT_EQ(failure(410, fixtures::expired_continue).peer->continue_token, "eyJ2");
}

TEST(Status, MessageIsASentence) {
  EXPECT_EQ(failure(401, fixtures::unauthorized).message(), "the server answered 401 Unauthorized: Unauthorized");
  EXPECT_EQ(failure(404, fixtures::pod_gone).message(),
            "the server answered 404 Not Found: pods \"missing\" not found");
  EXPECT_EQ(failure(599, "").message(), "the server answered 599");
}

TEST(Status, RetryAfterFromDetailsOrHeader) {
  EXPECT_EQ(failure(429, fixtures::budget).retry_after, std::nullopt);
  EXPECT_EQ(failure(429, fixtures::budget_processing).retry_after, 10s);
  auto throttled = response(429, "text/plain; charset=utf-8", "Too many requests, please try again later.\n");
  throttled.headers.set("Retry-After", "4");
  const auto error = failure_of(throttled, WallTime());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->retry_after, 4s);
  EXPECT_FALSE(error->peer->structured);
  EXPECT_EQ(error->peer->message, "Too many requests, please try again later.");
  EXPECT_EQ(traits(*error), "too-many transient");
  EXPECT_EQ(
      failure(429, fixtures::failure(R"("details":{"retryAfterSeconds":9223372036854775807},"code":429)")).retry_after,
      24h);
}

TEST(Status, TimeoutFilterWritesNoKind) {
  const auto error = failure_of(response(504, "text/plain; charset=utf-8", fixtures::timeout_without_kind), WallTime());
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->peer->structured);
  EXPECT_EQ(error->peer->reason, "Timeout");
  EXPECT_EQ(traits(*error), "transient");
}

TEST(Status, UnstructuredAnswers) {
  const auto missing = failure_of(response(404, "text/plain", "404 page not found\n"), WallTime());
  EXPECT_EQ(missing->message(), "the server answered 404 Not Found: 404 page not found");
  EXPECT_FALSE(missing->peer->structured);
  EXPECT_EQ(traits(*missing), "not-found");
  const auto gateway = failure_of(response(502, "text/html", "<html>Bad gateway</html>"), WallTime());
  EXPECT_EQ(traits(*gateway), "transient");
  EXPECT_THAT(gateway->message(), HasSubstr("instead of the API server"));
  const auto denied = failure_of(response(403, "text/plain", "forbidden: User \"a\" cannot b"), WallTime());
  EXPECT_EQ(traits(*denied), "forbidden");
  auto redirect = response(302, "text/html", "<a>");
  redirect.headers.set("Location", "https://login.example.com/");
  EXPECT_THAT(failure_of(redirect, WallTime())->message(), HasSubstr("https://login.example.com/"));
  for (const char* broken :
       {R"({"kind":"Status","status":"Failure")", R"({"kind":7,"status":"Failure"})", R"(["Failure"])"}) {
    EXPECT_FALSE(failure(500, broken).peer->structured) << broken;
  }
  EXPECT_TRUE(failure(500, fixtures::failure(R"("message":7,"details":[],"code":"x")")).peer->structured);
}

TEST(Status, TheHttpCodeCounts) {
  const auto error = failure(500, fixtures::failure(R"("message":"m","reason":"Odd","code":404)"));
  EXPECT_EQ(error.peer->code, 500);
  EXPECT_THAT(error.message(), HasSubstr("500 Internal Server Error: m"));
}

TEST(Status, SuccessIsNoFailure) {
  EXPECT_FALSE(failure_of(json_response(200, fixtures::pod("a", "u", "1")), WallTime()));
  EXPECT_FALSE(failure_of(json_response(201, fixtures::evicted), WallTime()));
  EXPECT_FALSE(failure_of(json_response(200, fixtures::pod("Failure", "u", "1")), WallTime()));
}

TEST(Status, FailuresHideInSuccesses) {
  const auto status = failure(200, fixtures::wrong_uid);
  EXPECT_EQ(status.peer->code, 409);
  EXPECT_TRUE(is_conflict(status));
  for (const auto& page : {response(200, "text/html; charset=utf-8", "hello"), response(200, "Text/HTML", ""),
                           response(200, "application/json", "  <!DOCTYPE html>")}) {
    const auto error = failure_of(page, WallTime());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::decode);
    EXPECT_THAT(error->message(), HasSubstr("instead of the API server"));
  }
}

TEST(Status, OfAWatchHead) {
  http::ResponseHead head;
  head.status = 200;
  head.headers.set("Content-Type", "application/json");
  EXPECT_FALSE(failure_of(head, "", WallTime()));
  head.status = 403;
  EXPECT_TRUE(is_denied_by_rbac(*failure_of(head, fixtures::rbac, WallTime())));
  head.status = 200;
  head.headers.set("Content-Type", "text/html");
  EXPECT_EQ(failure_of(head, "", WallTime())->code(), Errc::decode);
}

TEST(Status, OfAnObject) {
  EXPECT_TRUE(is_expired(error_of_status(fixtures::expired_list)));
  EXPECT_EQ(error_of_status("{").code(), Errc::decode);
  EXPECT_EQ(error_of_status(fixtures::node).code(), Errc::decode);
}

TEST(Status, TransportFailuresAreTransient) {
  for (const auto code :
       {Errc::timeout, Errc::dns, Errc::unreachable, Errc::tls, Errc::reset, Errc::protocol, Errc::decode}) {
    EXPECT_EQ(traits(Error(code, "x")), "transient") << to_string(code);
  }
  for (const auto code : {Errc::unavailable, Errc::invalid}) EXPECT_EQ(traits(Error(code, "x")), "") << to_string(code);
}

}  // namespace
}  // namespace haulout::k8s
