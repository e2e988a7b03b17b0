// Leases: requests, bodies, responses, and a Reflector of the Leases of one pool.
#include <gmock/gmock.h>

#include "k8s/reflector.hpp"
#include "k8s/status.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s/fixtures.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

WallTime at(std::string_view text) {
  return *parse_time(text);
}

Lease slot() {
  Lease lease;
  lease.ns = "haulout";
  lease.name = "haulout-default-0";
  lease.labels = {{"haulout.dev/pool", "default"}};
  lease.holder = "n1/nu";
  lease.acquire_time = at("2026-11-21T01:00:00.5Z");
  lease.renew_time = at("2026-11-21T01:00:00Z");
  lease.owner = OwnerReference{"v1", "Node", "n1", "nu", false};
  lease.owners = 1;
  return lease;
}

std::string stored(const std::string& name, const std::string& uid, const std::string& rv) {
  return R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":")" + name +
         R"(","namespace":"haulout","uid":")" + uid + R"(","resourceVersion":")" + rv +
         R"(","creationTimestamp":"2026-11-21T01:00:00Z","labels":{"haulout.dev/pool":"default"},)"
         R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"nu"},)"
         R"({"apiVersion":"v1","kind":"Node","name":"n2","uid":"nu2"}],"managedFields":[{"manager":"haulout"}]},)"
         R"("spec":{"holderIdentity":"n1/nu","acquireTime":"2026-11-21T01:00:00.500000Z",)"
         R"("renewTime":"2026-11-21T01:00:00.000000Z"}})";
}

TEST(LeaseRequests, ACreationNamesItsOwnerAndHasSixDecimals) {
  const auto request = create(slot(), {});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/apis/coordination.k8s.io/v1/namespaces/haulout/leases?fieldManager=haulout");
  EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
  EXPECT_EQ(
      request.body,
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"haulout-default-0",)"
      R"("namespace":"haulout","labels":{"haulout.dev/pool":"default"},)"
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"nu"}]},)"
      R"("spec":{"holderIdentity":"n1/nu","acquireTime":"2026-11-21T01:00:00.500000Z","renewTime":"2026-11-21T01:00:00.000000Z"}})");
}

TEST(LeaseRequests, WhatIsNotSetIsNotSent) {
  Lease bare;
  bare.ns = "haulout";
  bare.name = "a";
  EXPECT_EQ(create(bare, {}).body,
            R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a","namespace":"haulout"},)"
            R"("spec":{}})");
}

TEST(LeaseRequests, ReadsPatchesAndDeletions) {
  EXPECT_EQ(get<Lease>("haulout", "a").target, "/apis/coordination.k8s.io/v1/namespaces/haulout/leases/a");
  const auto patch = k8s::patch<Lease>("haulout", "a", R"({"spec":{}})", {DryRun::none, FieldValidation::strict});
  EXPECT_EQ(patch.method, "PATCH");
  EXPECT_EQ(patch.target,
            "/apis/coordination.k8s.io/v1/namespaces/haulout/leases/a?fieldManager=haulout&fieldValidation=Strict");
  EXPECT_EQ(patch.headers.find("Content-Type"), "application/merge-patch+json");
  EXPECT_FALSE(patch.repeatable);
  const auto deletion = remove<Lease>("haulout", "a", {"u1", std::nullopt, {}, "77"});
  EXPECT_EQ(deletion.method, "DELETE");
  EXPECT_EQ(deletion.target, "/apis/coordination.k8s.io/v1/namespaces/haulout/leases/a");
  EXPECT_EQ(deletion.body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1","resourceVersion":"77"}})");
}

TEST(LeaseRequests, CollectionsOfOneNamespace) {
  ListOptions options;
  options.ns = "haulout";
  options.label_selector = "haulout.dev/pool=default";
  EXPECT_EQ(list(Kind<Lease>::api, options).target,
            "/apis/coordination.k8s.io/v1/namespaces/haulout/leases?labelSelector=haulout.dev%2Fpool%3Ddefault");
  EXPECT_EQ(list(Kind<ConfigMap>::api, options).target,
            "/api/v1/namespaces/haulout/configmaps?labelSelector=haulout.dev%2Fpool%3Ddefault");
  EXPECT_EQ(list(Kind<Pod>::api, options).target,
            "/api/v1/namespaces/haulout/pods?labelSelector=haulout.dev%2Fpool%3Ddefault");
  const auto watching = watch(Kind<Lease>::api, {"", "42", 250s, "haulout.dev/pool=default", "haulout"});
  EXPECT_EQ(watching.target,
            "/apis/coordination.k8s.io/v1/namespaces/haulout/leases?watch=1"
            "&labelSelector=haulout.dev%2Fpool%3Ddefault&resourceVersion=42&allowWatchBookmarks=true"
            "&timeoutSeconds=250");
}

TEST(LeaseRequestsDeathTest, WithoutANameOrAGuardNothingIsSent) {
  EXPECT_DEATH(list(Kind<Lease>::api, {}), "namespace");
  EXPECT_DEATH(get<Lease>("haulout", ""), "Lease name");
  EXPECT_DEATH(create<Lease>({}, {}), "Lease name");
  EXPECT_DEATH(remove<Lease>("haulout", "a", {"", std::nullopt, {}, "1"}), "UID");
  EXPECT_DEATH(remove<Lease>("haulout", "a", {"u1", std::nullopt, {}, ""}), "resourceVersion");
}

TEST(LeaseCodec, ReadsEveryField) {
  const auto lease = decode<Lease>(stored("haulout-default-0", "lu", "7"));
  ASSERT_TRUE(lease) << lease.error().message();
  Lease expected = slot();
  expected.uid = "lu";
  expected.resource_version = "7";
  expected.owners = 2;
  EXPECT_EQ(*lease, expected);
}

TEST(LeaseCodec, AnOrphanAndAnEmptyOne) {
  const auto lease = decode<Lease>(
      R"({"kind":"Lease","metadata":{"name":"a","namespace":"haulout","uid":"u","resourceVersion":"1"},"spec":{}})");
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(lease->holder, "");
  EXPECT_FALSE(lease->owner);
  EXPECT_EQ(lease->owners, 0u);
  EXPECT_FALSE(lease->renew_time);
}

TEST(LeaseCodec, WhatMakesNoSenseIsRefused) {
  for (
      const char* body :
      {R"({"kind":"Pod"})", R"({"kind":"Lease","metadata":{"name":"a","namespace":"h","resourceVersion":"1"}})",
       R"({"kind":"Lease","metadata":{"name":"a","namespace":"h","uid":"u","resourceVersion":"1"},"spec":{"renewTime":"soon"}})"}) {
    const auto lease = decode<Lease>(body);
    ASSERT_FALSE(lease) << body;
    EXPECT_EQ(lease.error().code(), Errc::decode);
  }
}

TEST(LeaseStatus, TakenIsNoConflict) {
  const std::string taken = fixtures::failure(
      R"("message":"leases.coordination.k8s.io \"haulout-default-0\" already exists","reason":"AlreadyExists","details":{"name":"haulout-default-0","group":"coordination.k8s.io","kind":"leases"},"code":409)");
  const auto error = *failure_of(json_response(409, taken), WallTime());
  EXPECT_TRUE(is_already_exists(error));
  EXPECT_FALSE(is_conflict(error));
  EXPECT_FALSE(is_transient(error));
  EXPECT_FALSE(is_already_exists(*failure_of(json_response(409, fixtures::wrong_uid), WallTime())));
  EXPECT_FALSE(is_already_exists(*failure_of(json_response(409, "somebody"), WallTime())));
  EXPECT_FALSE(is_already_exists(Error(Errc::reset, "")));
}

class LeaseClientTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::ScriptedTransport transport{clock};
  Client client{transport, clock, {FieldValidation::strict, 2}};
  const TimePoint soon = start + 60s;
};

TEST_F(LeaseClientTest, Verbs) {
  transport.answer(json_response(201, stored("a", "u", "1")));
  transport.answer(json_response(200, stored("a", "u", "2")));
  transport.answer(json_response(200, stored("a", "u", "3")));
  transport.answer(json_response(200, fixtures::list("LeaseList", "9", stored("a", "u", "3"))));
  transport.answer(json_response(
      200,
      R"({"kind":"Status","status":"Success","details":{"name":"a","group":"coordination.k8s.io","kind":"leases"}})"));
  EXPECT_EQ(run(client.create<Lease>(slot(), soon))->resource_version, "1");
  EXPECT_EQ(run(client.get<Lease>("haulout", "a", soon))->resource_version, "2");
  EXPECT_EQ(run(client.patch<Lease>("haulout", "a", "{}", soon))->resource_version, "3");
  EXPECT_EQ(run(client.list<Lease>({.label_selector = "haulout.dev/pool=default", .limit = usual_page, .ns = "haulout"},
                                   soon))
                ->items.size(),
            1u);
  EXPECT_TRUE(run(client.remove<Lease>("haulout", "a", {"u", {}, {}, "3"}, soon)));
  EXPECT_THAT(transport.requests()[0].request.target, HasSubstr("fieldValidation=Strict"));
  EXPECT_THAT(transport.requests()[3].request.target, HasSubstr("limit=2"));
}

TEST_F(LeaseClientTest, AReflectorOfOnePool) {
  SeededRng rng{7};
  std::vector<std::string> changes;
  ReflectorOptions options;
  options.ns = "haulout";
  options.label_selector = "haulout.dev/pool=default";
  Reflector<Lease> reflector(
      client, rng, options,
      [&](const std::string& uid, const Lease* lease) { changes.push_back((lease ? "+" : "-") + uid); }, [] {});
  transport.answer(json_response(200, fixtures::list("LeaseList", "10", stored("a", "ua", "1"))));
  const auto bookmark =
      R"({"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"13"},"spec":{}}})";
  transport.stream({{1s, {}, fixtures::event("ADDED", stored("b", "ub", "11")) + "\n"},
                    {1s, {}, fixtures::event("DELETED", stored("a", "ua", "12")) + "\n" + bookmark + "\n"}});
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn([](Reflector<Lease>& of) -> boost::asio::awaitable<void> {
      [[maybe_unused]] const auto ended = co_await of.run();
    }(reflector));
    co_await clock.sleep_until(start + 5s);
    group.cancel();
  }));
  EXPECT_THAT(changes, ElementsAre("+ua", "+ub", "-ua"));
  EXPECT_THAT(transport.lists()[0].request.target,
              HasSubstr("/namespaces/haulout/leases?labelSelector=haulout.dev%2Fpool%3Ddefault"));
  EXPECT_THAT(transport.watches()[0].request.target,
              HasSubstr("/namespaces/haulout/leases?watch=1&labelSelector=haulout.dev%2Fpool%3Ddefault"));
}

}  // namespace
}  // namespace haulout::k8s
