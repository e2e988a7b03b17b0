#include "k8s/client.hpp"

#include <gmock/gmock.h>

#include "k8s/status.hpp"
#include "tests/k8s/fixtures.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

class ClientTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::ScriptedTransport transport{clock};
  Client client{transport, clock, {FieldValidation::strict, 2}};
  const TimePoint soon = start + 60s;

  std::string page(const std::string& name, const std::string& more = "") {
    return fixtures::list("PodList", "5", fixtures::pod(name, "u" + name, "1"), more);
  }
  std::string target(std::size_t i) { return transport.requests().at(i).request.target; }
};

TEST_F(ClientTest, CollectsPages) {
  transport.answer(json_response(200, page("a", "t1")));
  transport.answer(json_response(200, page("b", "t2")));
  transport.answer(json_response(200, page("c")));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->items[2].name, "c");
  EXPECT_EQ(list->meta.resource_version, "5");
  EXPECT_TRUE(list->meta.continue_token.empty());
  EXPECT_EQ(target(0), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=2");
  EXPECT_EQ(target(1), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=2&continue=t1");
  EXPECT_EQ(target(2), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=2&continue=t2");
  EXPECT_EQ(transport.requests()[0].deadline, soon);
}

// P11: a proxy between client and server ignores field selectors. A list with pods of other nodes is an error.
TEST_F(ClientTest, AListAboutOtherNodesIsNoList) {
  std::string foreign = fixtures::pod("b", "ub", "1");
  foreign.replace(foreign.find("\"n1\""), 4, "\"n2\"");
  transport.answer(json_response(200, page("a", "t1")));
  transport.answer(json_response(200, fixtures::list("PodList", "5", foreign)));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), Errc::decode);
  EXPECT_THAT(list.error().message(), HasSubstr("n2"));
}

// A pod that is not bound to any node is not on this node. So a list of this node's pods that contains one is an error.
TEST_F(ClientTest, AListWithPodsOnNoNodeIsNoList) {
  std::string unbound = fixtures::pod("b", "ub", "1");
  unbound.replace(unbound.find(R"("nodeName":"n1")"), 15, "");
  transport.answer(json_response(200, fixtures::list("PodList", "5", unbound)));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), Errc::decode);
}

// P11: if a proxy ignored label selectors, `drain -l` would apply to the whole cluster. So a list with a node that the
// selector does not match is an error.
TEST_F(ClientTest, NodesWithOtherLabelsAreNoAnswer) {
  const auto listed = fixtures::list("NodeList", "5", fixtures::node);
  for (const char* selector : {"", "pool", "!rack"}) {
    transport.answer(json_response(200, listed));
    EXPECT_TRUE(run(client.list_nodes(selector, soon))) << selector;
  }
  transport.answer(json_response(200, listed));
  const auto others = run(client.list_nodes("rack=r7", soon));
  ASSERT_FALSE(others);
  EXPECT_EQ(others.error().code(), Errc::decode);
  EXPECT_THAT(others.error().message(), HasSubstr("rack=r7"));
}

TEST_F(ClientTest, AnotherNodeIsNoAnswerAboutOurs) {
  transport.answer(json_response(200, fixtures::node));
  const auto node = run(client.get_node("n2", soon));
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code(), Errc::decode);
  transport.answer(json_response(200, fixtures::node));
  EXPECT_FALSE(run(client.patch_node("n2", "{}", DryRun::none, soon)));
}

// A caller may need only a few of ten thousand pods. The client drops the others after each page, so that it never
// holds all of them.
TEST_F(ClientTest, WhatIsNotWantedIsDroppedPageByPage) {
  transport.answer(json_response(200, page("a", "t1")));
  transport.answer(json_response(200, page("b", "t2")));
  transport.answer(json_response(200, page("c")));
  std::vector<std::string> asked;
  const auto is_b = [&](const Pod& pod) {
    asked.push_back(pod.name + std::to_string(transport.requests().size()));
    return pod.name == "b";
  };
  const auto list = run(client.list<Pod>(ListOptions(), soon, Duration::max(), is_b));
  ASSERT_TRUE(list);
  EXPECT_THAT(asked, ElementsAre("a1", "b2", "c3"));
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0].name, "b");
}

// When the client's own clock changes, the client's estimate of the server's time stays the same.
TEST_F(ClientTest, TheServersTimeOutlivesAJumpOfOurClock) {
  const WallTime before = clock.wall_now();
  auto answer = json_response(200, page("a"));
  answer.headers.set("Date", "Thu, 01 Jan 2026 00:00:00 GMT");
  transport.answer(answer);
  ASSERT_TRUE(run(client.list_pods_on("n1", soon)));
  clock.shift_wall(1h);
  EXPECT_LT(std::chrono::abs(client.server_now() - before), 2s);
  clock.shift_wall(-2h);
  EXPECT_LT(std::chrono::abs(client.server_now() - before), 2s);
}

TEST_F(ClientTest, AnExpiredTokenRestartsTheListAndNeverMixesTwo) {
  transport.answer(json_response(200, page("a", "t1")));
  transport.answer(json_response(410, fixtures::expired_continue));
  transport.answer(json_response(200, page("b", "t2")));
  transport.answer(json_response(200, page("c")));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[0].name, "b");
  EXPECT_THAT(target(2), Not(HasSubstr("continue")));
}

TEST_F(ClientTest, AfterTwoRestartsTheListIsUnpaged) {
  for (int i = 0; i < 3; ++i) {
    transport.answer(json_response(200, page("a", "t")));
    transport.answer(json_response(410, fixtures::expired_continue));
  }
  transport.answer(json_response(200, page("z")));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items.front().name, "z");
  EXPECT_EQ(transport.requests().size(), 7u);
  EXPECT_EQ(target(6), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1");
}

TEST_F(ClientTest, AListThatFailsInTheMiddleIsNoList) {
  transport.answer(json_response(200, page("a", "t1")));
  transport.answer(json_response(503, fixtures::shutting_down));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_FALSE(list);
  EXPECT_TRUE(list.error().is_status(503));
}

TEST_F(ClientTest, AListThatNeverEndsIsRefused) {
  transport.answer(json_response(200, page("a", "t")));
  transport.answer(json_response(200, page("a", "t")));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), Errc::decode);
}

TEST_F(ClientTest, APageHasItsOwnDeadline) {
  transport.answer(json_response(200, page("a", "t1")), 8s);
  transport.answer(json_response(200, page("b")), 11s);
  const auto list = run(client.list<Pod>({"spec.nodeName=n1", "", 2, ""}, soon, 10s));
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), Errc::timeout);
  EXPECT_EQ(elapsed(), 18s);
}

TEST_F(ClientTest, Evicts) {
  transport.answer(json_response(201, fixtures::evicted));
  EXPECT_TRUE(run(client.evict("shop", "web-0", {"u1", std::nullopt, {}}, soon)));
  EXPECT_EQ(target(0), "/api/v1/namespaces/shop/pods/web-0/eviction?fieldValidation=Strict");
}

TEST_F(ClientTest, AnEvictionSucceedsOnlyIfTheServerSaysSo) {
  transport.answer(json_response(200, fixtures::wrong_uid));
  transport.answer(json_response(201, "{}"));
  transport.answer(json_response(429, fixtures::budget));
  transport.fail(Error(Errc::reset, "connection reset"));
  const auto hidden = run(client.evict("s", "p", {"u1", std::nullopt, {}}, soon));
  ASSERT_FALSE(hidden);
  EXPECT_TRUE(is_conflict(hidden.error()));
  const auto unreadable = run(client.evict("s", "p", {"u1", std::nullopt, {}}, soon));
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().code(), Errc::decode);
  const auto budget = run(client.evict("s", "p", {"u1", std::nullopt, {}}, soon));
  ASSERT_FALSE(budget);
  EXPECT_TRUE(budget.error().peer->has_cause("DisruptionBudget"));
  const auto lost = run(client.evict("s", "p", {"u1", std::nullopt, {}}, soon));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Errc::reset);
}

TEST_F(ClientTest, DeletesReadsPatchesAndAsks) {
  transport.answer(json_response(200, fixtures::pod("p", "u1", "1")));
  transport.answer(json_response(200, fixtures::node));
  transport.answer(json_response(200, fixtures::node));
  transport.answer(json_response(200, fixtures::list("NodeList", "1", fixtures::node)));
  transport.answer(json_response(200, fixtures::list("PodDisruptionBudgetList", "1", fixtures::pdb)));
  transport.answer(json_response(404, fixtures::pod_gone));
  transport.answer(json_response(201, R"({"kind":"SelfSubjectAccessReview","status":{"allowed":false}})"));
  EXPECT_TRUE(run(client.remove<Pod>("s", "p", {"u1", std::nullopt, {}}, soon)));
  EXPECT_EQ(run(client.get_node("n1", soon))->uid, "nu");
  EXPECT_TRUE(run(client.patch_node("n1", "{}", DryRun::server, soon)));
  EXPECT_EQ(run(client.list_nodes("pool=a", soon))->items.size(), 1u);
  EXPECT_EQ(run(client.list<PodDisruptionBudget>({.limit = usual_page}, soon))->items.size(), 1u);
  EXPECT_TRUE(is_not_found(run(client.get<DaemonSet>("s", "d", soon)).error()));
  EXPECT_FALSE(run(review_access(client, {"patch", "", "nodes", "", "", "n1"}, soon))->allowed);
  EXPECT_EQ(target(2), "/api/v1/nodes/n1?fieldManager=haulout&dryRun=All&fieldValidation=Strict");
  EXPECT_EQ(target(3), "/api/v1/nodes?labelSelector=pool%3Da&limit=2");
}

TEST_F(ClientTest, AnswersOfTheWrongKindAreRefused) {
  transport.answer(json_response(200, fixtures::list("NodeList", "1", "")));
  const auto list = run(client.list_pods_on("n1", soon));
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(), HasSubstr("expected an object of kind PodList, got kind NodeList"));
}

using ClientDeathTest = ClientTest;
TEST_F(ClientDeathTest, NeverListsThePodsOfNoNode) {
  EXPECT_DEATH((void)run(client.list_pods_on("", soon)), "selector");
}

TEST_F(ClientTest, TheServersTimeIsThatOfItsLastAnswerAndWhatHasPassedSince) {
  EXPECT_EQ(client.server_now(), clock.wall_now()) << "before the first answer";
  const WallTime date = std::chrono::sys_days{std::chrono::year{2026} / 11 / 22} + 12h;
  auto dated = json_response(200, page("a"));
  dated.headers.set("Date", "Sun, 22 Nov 2026 12:00:00 GMT");
  transport.answer(dated);
  ASSERT_TRUE(run(client.list_pods_on("n1", soon)));
  EXPECT_EQ(client.server_now(), date);
  clock.shift_wall(1h);
  EXPECT_EQ(client.server_now(), date) << "whatever our own clock does";
  run(clock.sleep_until(clock.now() + 90s));
  EXPECT_EQ(client.server_now(), date + 90s);
}

// A load balancer answers in place of the server, and has a clock of its own. Its Date must not change the client's
// estimate of the server's time.
TEST_F(ClientTest, AnErrorPageTellsNoTime) {
  auto down = json_response(503, "<html>down</html>");
  down.headers.set("Date", "Thu, 01 Jan 2026 00:00:00 GMT");
  transport.answer(down);
  auto login = json_response(200, "ok");
  login.headers.set("Date", "Thu, 01 Jan 2026 00:00:00 GMT");
  transport.answer(login);
  ASSERT_FALSE(run(client.list_pods_on("n1", soon)));
  ASSERT_FALSE(run(client.list_pods_on("n1", soon)));
  EXPECT_EQ(client.server_now(), clock.wall_now());
}

TEST_F(ClientTest, ADateFarAwayIsClampedToWhatADurationHolds) {
  auto dated = json_response(200, page("a"));
  dated.headers.set("Date", "Fri, 31 Dec 9999 23:59:59 GMT");
  transport.answer(dated);
  ASSERT_TRUE(run(client.list_pods_on("n1", soon)));
  EXPECT_GT(client.server_now(), clock.wall_now());
  EXPECT_GT(Duration(client.server_now() - clock.wall_now()), Duration::zero()) << "it overflows";
}

TEST_F(ClientTest, EachPageOfAListHasItsTime) {
  for (int i = 0; i < 5; ++i) transport.answer(json_response(200, page("a", "t" + std::to_string(i))), 40s);
  transport.answer(json_response(200, page("b")), 40s);
  const auto list = run(client.list_pods_on("n1", TimePoint::max()));
  ASSERT_TRUE(list) << list.error().message();
  transport.answer(json_response(200, page("b")), 61s);
  const auto slow = run(client.list_pods_on("n1", TimePoint::max()));
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code(), Errc::timeout);
}

TEST_F(ClientTest, ADifferenceOfASecondIsNone) {
  clock.shift_wall(WallTime(std::chrono::sys_days{std::chrono::year{2026} / 11 / 22} + 12h + 700ms) - clock.wall_now());
  auto dated = json_response(200, page("a"));
  dated.headers.set("Date", "Sun, 22 Nov 2026 12:00:00 GMT");
  transport.answer(dated);
  ASSERT_TRUE(run(client.list_pods_on("n1", soon)));
  EXPECT_EQ(client.server_now(), clock.wall_now()) << "Date is cut to whole seconds";
}

}  // namespace
}  // namespace haulout::k8s
