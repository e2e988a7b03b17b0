#include "k8s/reflector.hpp"

#include <gmock/gmock.h>

#include "k8s/status.hpp"
#include "tests/k8s/reflector_fixture.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using namespace std::chrono_literals;

// What the Reflector does after lists that fail, and if watches are forbidden.
using ReflectorListsTest = ReflectorTest;

TEST_F(ReflectorListsTest, AForbiddenWatchBecomesPolling) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.refuse_stream(403, fixtures::rbac);
  transport.refuse_stream(403, fixtures::rbac);
  for (int i = 0; i < 12; ++i) answer_list(std::to_string(20 + i), {fixtures::pod("b", "ub", "2")});
  run_for(40s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "-ua", "+ub@2"));
  const auto watches = transport.watches();
  ASSERT_EQ(watches.size(), 2u);
  EXPECT_GE(watches[1].at - watches[0].at, 1s);
  const auto lists = transport.lists();
  ASSERT_GE(lists.size(), 7u);
  for (std::size_t i = 2; i < lists.size(); ++i) {
    EXPECT_THAT(lists[i].at - lists[i - 1].at, AllOf(Ge(4s), Le(6s))) << i;
  }
  EXPECT_TRUE(reflector.health().polling);
  EXPECT_TRUE(reflector.health().connected);
}

// After etcd was restored from a backup, an object may have another state with the same resourceVersion. The Reflector
// must report the new state.
TEST_F(ReflectorListsTest, AnotherStateOfTheSameResourceVersionIsTold) {
  answer_list("10", {fixtures::pod("a", "ua", "7"), fixtures::pod("b", "ub", "8")});
  transport.refuse_stream(403, fixtures::rbac);
  transport.refuse_stream(403, fixtures::rbac);
  std::string other = fixtures::pod("a", "ua", "7");
  other.insert(other.find("\"uid\""), "\"labels\":{\"restored\":\"true\"},");
  for (int i = 0; i < 12; ++i) answer_list("9", {other, fixtures::pod("b", "ub", "8")});
  run_for(40s);
  EXPECT_THAT(changes, ElementsAre("+ua@7", "+ub@8", "+ua@7"));
}

// The watch is silent: it waits for a revision that the server, after the restore of an older backup, will reach only
// in hours. The Reflector uses the list that it requested beside the watch.
TEST_F(ReflectorListsTest, AListBesideADeafWatchIsTakenOver) {
  answer_list("100", {fixtures::pod("a", "ua", "90"), fixtures::pod("b", "ub", "91"), fixtures::pod("d", "ud", "9")});
  transport.stream({end(60s)});
  answer_list("20", {fixtures::pod("b", "ub", "15"), fixtures::pod("c", "uc", "16"), fixtures::pod("d", "ud", "9")});
  answer_silence();
  look_again_at = 30s;
  run_for(90s);
  EXPECT_THAT(changes, ElementsAre("+ua@90", "+ub@91", "+ud@9", "-ua", "+ub@15", "+uc@16", "+ud@9"));
  EXPECT_TRUE(looked_again && *looked_again && **looked_again);
  ASSERT_EQ(transport.watches().size(), 2u);
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=20&"));
}

TEST_F(ReflectorListsTest, WhatTheWatchTellsMeanwhileIsNewerThanTheList) {
  answer_list("100", {fixtures::pod("a", "ua", "90"), fixtures::pod("c", "uc", "92")});
  transport.stream({bytes(modified("a", "ua", "101") + deleted("c", "uc", "102"), 31s), end(29s)});
  answer_list("100", {fixtures::pod("a", "ua", "90"), fixtures::pod("b", "ub", "91"), fixtures::pod("c", "uc", "92")},
              2s);
  answer_silence();
  look_again_at = 30s;
  run_for(90s);
  EXPECT_THAT(changes, ElementsAre("+ua@90", "+uc@92", "+ua@101", "-uc", "+ub@91"));
  ASSERT_EQ(transport.watches().size(), 2u);
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=102&"));
}

// An object exists again, because etcd was restored from a backup. The Reflector reports its events until it is deleted
// again.
TEST_F(ReflectorListsTest, WhatAListBesideTheWatchBringsBackIsHeardOf) {
  answer_list("100", {fixtures::pod("a", "ua", "90")});
  transport.stream({bytes(deleted("a", "ua", "101"), 10s), bytes(modified("a", "ua", "30"), 30s),
                    bytes(deleted("a", "ua", "31"), 1s)});
  answer_list("20", {fixtures::pod("a", "ua", "15")});
  look_again_at = 30s;
  run_for(60s);
  EXPECT_THAT(changes, ElementsAre("+ua@90", "-ua", "+ua@15", "+ua@30", "-ua"));
}

// A list was requested beside the watch. Before it arrived, the resourceVersion of the watch expired, and the Reflector
// used a newer list. So the late list changes nothing.
TEST_F(ReflectorListsTest, AListBesideTheWatchThatWasOvertakenChangesNothing) {
  answer_list("100", {fixtures::pod("a", "ua", "90")});
  transport.stream({bytes(fixtures::expired_event + "\n", 31s)});
  answer_list("110", {fixtures::pod("a", "ua", "90")}, 20s);
  answer_list("120", {fixtures::pod("b", "ub", "115")});
  answer_silence();
  look_again_at = 30s;
  run_for(60s);
  ASSERT_TRUE(looked_again && *looked_again);
  EXPECT_FALSE(**looked_again) << "it was not used";
  EXPECT_THAT(changes, ElementsAre("+ua@90", "-ua", "+ub@115"));
  ASSERT_EQ(transport.watches().size(), 2u);
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=120&"));
}

TEST_F(ReflectorListsTest, AListBesideTheWatchThatFailsChangesNothing) {
  answer_list("100", {fixtures::pod("a", "ua", "90")});
  answer_silence();
  transport.answer(json_response(503, fixtures::shutting_down));
  look_again_at = 30s;
  run_for(60s);
  EXPECT_THAT(changes, ElementsAre("+ua@90"));
  ASSERT_TRUE(looked_again);
  EXPECT_FALSE(*looked_again);
  EXPECT_TRUE(reflector.health().connected);
}

TEST_F(ReflectorListsTest, WhatIsNotWantedIsNotKept) {
  std::string listed;
  reflector.keep_only([&](const Pod& pod) {
    if (changes.empty()) listed += pod.name + " ";
    return pod.name != "other";
  });
  answer_list("10", {fixtures::pod("a", "ua", "1"), fixtures::pod("other", "uo", "2")});
  transport.stream({bytes(added("b", "ub", "11") + modified("other", "uo", "12") + deleted("other", "uo", "13"))});
  run_for(5s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "+ub@11"));
  EXPECT_EQ(reflector.objects().size(), 2u);
  EXPECT_EQ(listed, "a other a ") << "what a list has of others is dropped before the view takes it over";
}

TEST_F(ReflectorListsTest, OneDenialProvesNothing) {
  answer_list("10", {});
  transport.refuse_stream(403, fixtures::rbac);
  answer_silence();
  run_for(30s);
  EXPECT_EQ(transport.lists().size(), 1u);
  EXPECT_FALSE(reflector.health().polling);
  EXPECT_TRUE(reflector.health().connected);
}

TEST_F(ReflectorListsTest, PollingSurvivesFailuresAndEndsWhenTheWatchIsAllowed) {
  answer_list("10", {});
  transport.refuse_stream(403, fixtures::rbac);
  transport.refuse_stream(403, fixtures::rbac);
  transport.answer(json_response(503, fixtures::shutting_down));
  transport.answer(json_response(401, fixtures::unauthorized));
  for (int i = 0; i < 80; ++i) answer_list("30", {});
  answer_silence();
  run_for(320s);
  EXPECT_FALSE(ended);
  EXPECT_EQ(transport.watches().size(), 3u);
  EXPECT_FALSE(reflector.health().polling);
  EXPECT_TRUE(reflector.health().connected);
  EXPECT_THAT(transport.watches()[2].request.target, HasSubstr("resourceVersion=30&"));
}

TEST_F(ReflectorListsTest, TheFirstListIsTriedUntilItWorks) {
  auto throttled = json_response(429, "Too many requests, please try again later.\n");
  throttled.headers.set("Retry-After", "4");
  transport.answer(throttled);
  transport.fail(Error(Errc::unreachable, "connection refused"));
  transport.answer(json_response(403, fixtures::rbac));
  answer_list("10", {});
  answer_silence();
  run_for(60s);
  EXPECT_FALSE(ended);
  EXPECT_TRUE(reflector.health().connected);
  EXPECT_GE(asked_at(transport.lists()[1]), 4s);
  EXPECT_GE(transport.lists()[3].at - transport.lists()[2].at, 1s);
}

TEST_F(ReflectorListsTest, TheFirstListGivesUpOnWhatCannotHeal) {
  transport.answer(json_response(401, fixtures::unauthorized));
  run_for(60s);
  ASSERT_TRUE(ended);
  ASSERT_FALSE(*ended);
  EXPECT_TRUE(is_unauthorized(ended->error()));
  EXPECT_FALSE(reflector.health().synced);
}

TEST_F(ReflectorListsTest, TheFirstListGivesUpWhenDeniedTwice) {
  transport.answer(json_response(403, fixtures::rbac));
  transport.answer(json_response(403, fixtures::rbac));
  run_for(60s);
  ASSERT_TRUE(ended);
  ASSERT_FALSE(*ended);
  EXPECT_TRUE(is_denied_by_rbac(ended->error()));
  EXPECT_GE(asked_at(transport.lists()[1]), 1s);
}

TEST_F(ReflectorListsTest, OnceSyncedItNeverGivesUp) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.stream({bytes(fixtures::expired_event + "\n")});
  for (int i = 0; i < 10; ++i) transport.answer(json_response(401, fixtures::unauthorized));
  for (int i = 0; i < 60; ++i) transport.answer(json_response(403, fixtures::rbac));
  run_for(600s);
  EXPECT_FALSE(ended);
  EXPECT_TRUE(reflector.health().synced);
  EXPECT_FALSE(reflector.health().connected);
  ASSERT_TRUE(reflector.health().error);
  EXPECT_TRUE(is_forbidden(*reflector.health().error));
  EXPECT_THAT(reflector.objects(), ::testing::SizeIs(1)) << "what was known stays known";
  EXPECT_THAT(transport.lists().size(), AllOf(Ge(20u), Le(71u)));
}

TEST_F(ReflectorListsTest, APageThatHangsIsAskedAgain) {
  answer_list("10", {}, 61s);
  answer_list("11", {});
  answer_silence();
  run_for(70s);
  EXPECT_TRUE(reflector.health().synced);
  EXPECT_THAT(asked_at(transport.lists()[1]), AllOf(Ge(60s), Le(61s)));
}

TEST_F(ReflectorListsTest, AHeadThatHangsIsAskedAgain) {
  answer_list("10", {});
  transport.stream({}, 31s);
  answer_silence();
  run_for(40s);
  EXPECT_THAT(asked_at(transport.watches()[1]), AllOf(Ge(30s), Le(31s)));
}

TEST_F(ReflectorListsTest, WithoutAnyWatchTheViewIsRenewedByLists) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  for (int i = 0; i < 3; ++i) transport.fail_stream(Error(Errc::reset, "proxy"));
  answer_list("20", {});
  answer_silence();
  run_for(30s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "-ua"));
}

TEST_F(ReflectorListsTest, OneNodeByName) {
  std::vector<std::string> seen;
  Reflector<Node> nodes(
      client, rng, {.field_selector = "metadata.name=n1"},
      [&](const std::string&, const Node* node) { seen.push_back(node ? node->uid : "gone"); }, [] {});
  transport.answer(json_response(200, fixtures::list("NodeList", "9", fixtures::node)));
  transport.stream({bytes(fixtures::event("DELETED", fixtures::node) + "\n")});
  const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    const auto child = [&]() -> boost::asio::awaitable<void> { (void)co_await nodes.run(); };
    group.spawn(child());
    co_await clock.sleep_until(start + 5s);
  };
  run(with_task_group(body));
  EXPECT_THAT(seen, ElementsAre("nu", "gone"));
  EXPECT_EQ(transport.requests()[0].request.target, "/api/v1/nodes?fieldSelector=metadata.name%3Dn1&limit=500");
}

}  // namespace
}  // namespace haulout::k8s
