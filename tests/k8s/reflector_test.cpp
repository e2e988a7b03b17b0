#include "k8s/reflector.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/reflector_fixture.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using namespace std::chrono_literals;

TEST_F(ReflectorTest, ListsThenWatchesFromThere) {
  answer_list("10", {fixtures::pod("a", "ua", "1"), fixtures::pod("b", "ub", "2")});
  transport.stream(
      {bytes(added("c", "uc", "11"), 1s), bytes(modified("a", "ua", "12") + deleted("b", "ub", "13"), 1s)});
  run_for(5s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "+ub@2", "+uc@11", "+ua@12", "-ub"));
  ASSERT_EQ(transport.requests().size(), 2u);
  const auto& list = transport.requests()[0];
  EXPECT_EQ(list.request.target, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500");
  EXPECT_EQ(list.deadline, start + 60s);
  const auto& watch = transport.requests()[1];
  EXPECT_THAT(watch.request.target, AllOf(HasSubstr("resourceVersion=10&"), HasSubstr("allowWatchBookmarks=true")));
  EXPECT_EQ(watch.deadline, start + 30s);
  EXPECT_EQ(reflector.objects().size(), 2u);
  EXPECT_TRUE(reflector.health().synced);
  EXPECT_TRUE(reflector.health().connected);
  EXPECT_FALSE(reflector.health().polling);
  EXPECT_EQ(reflector.health().last_heard, start + 2s);
  EXPECT_EQ(batches, 4u) << "list, connected, and two of events";
}

// P11: a proxy ignores the field selector of a watch. A watch event about a pod of another node is an error of the
// connection; the Reflector does not report the pod.
TEST_F(ReflectorTest, WhatIsNotSelectedIsNoNewsButAnError) {
  const auto on_n2 = [](std::string line) { return line.replace(line.find("\"n1\""), 4, "\"n2\""); };
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.stream({bytes(on_n2(added("b", "ub", "11")) + added("c", "uc", "12"), 1s)});
  answer_list("12", {on_n2(fixtures::pod("a", "ua", "1"))}, 1s);
  run_for(2s);
  EXPECT_THAT(changes, ElementsAre("+ua@1"));
  EXPECT_FALSE(reflector.health().connected);
  ASSERT_TRUE(reflector.health().error);
  EXPECT_EQ(reflector.health().error->code(), Errc::decode);
  EXPECT_THAT(reflector.health().error->message(), HasSubstr("n2"));
}

TEST_F(ReflectorTest, EventsAreLeftUnreadWhileTheyMayBeGathered) {
  gathering = 40ms;
  answer_list("10", {});
  transport.stream({bytes(added("a", "ua", "11"), 1s), bytes(added("b", "ub", "12"))});
  run_for(1s + 39ms);
  EXPECT_THAT(changes, ElementsAre("+ua@11")) << "the first is not waited with";
}

TEST_F(ReflectorTest, GatheringEndsInTime) {
  gathering = 40ms;
  answer_list("10", {});
  transport.stream({bytes(added("a", "ua", "11"), 1s), bytes(added("b", "ub", "12"))});
  run_for(1s + 41ms);
  EXPECT_THAT(changes, ElementsAre("+ua@11", "+ub@12"));
}

TEST_F(ReflectorTest, GatheringEndsWhenSomebodyWaits) {
  gathering = 10s;
  answer_list("10", {});
  transport.stream({bytes(added("a", "ua", "11"), 1s), bytes(added("b", "ub", "12"))});
  const auto alarm = clock.set_alarm(context.get_executor(), start + 2s, [this] { reflector.read_on(); });
  run_for(2s + 1ms);
  EXPECT_THAT(changes, ElementsAre("+ua@11", "+ub@12"));
}

TEST_F(ReflectorTest, TheEndOfAWatchIsNotGathered) {
  gathering = 10s;
  answer_list("10", {});
  transport.stream({bytes(added("a", "ua", "11"), 1s), end(1s)});
  run_for(2s + 1ms);
  EXPECT_FALSE(reflector.health().connected);
}

TEST_F(ReflectorTest, TheTimeoutOfAWatchIsJittered) {
  answer_list("10", {});
  for (int i = 0; i < 8; ++i) transport.stream({end(20s)});
  answer_silence();
  run_for(170s);
  std::set<std::string> timeouts;
  for (const auto& watch : transport.watches()) {
    const auto text = watch.request.target.substr(watch.request.target.rfind('=') + 1);
    EXPECT_THAT(std::stoi(text), AllOf(Ge(232), Le(290)));
    timeouts.insert(text);
  }
  EXPECT_GT(timeouts.size(), 3u);
}

TEST_F(ReflectorTest, ASeedSparesTheList) {
  List<Pod> list = *decode_list<Pod>(fixtures::list("PodList", "10", fixtures::pod("a", "ua", "1")));
  reflector.seed(std::move(list));
  EXPECT_THAT(changes, ElementsAre("+ua@1"));
  EXPECT_TRUE(reflector.health().synced);
  EXPECT_FALSE(reflector.health().connected);
  answer_silence();
  run_for(5s);
  EXPECT_THAT(transport.lists(), IsEmpty());
  EXPECT_THAT(transport.watches()[0].request.target, HasSubstr("resourceVersion=10&"));
}

TEST_F(ReflectorTest, EventsInPiecesAndBookmarks) {
  answer_list("10", {});
  const auto text = added("a", "ua", "11") + fixtures::bookmark + "\n\n" + added("b", "ub", "242");
  std::vector<Step> steps;
  for (std::size_t i = 0; i < text.size(); i += 7) steps.push_back(bytes(text.substr(i, 7), 1ms));
  steps.push_back(end(20s));
  transport.stream(std::move(steps));
  answer_silence();
  run_for(30s);
  EXPECT_THAT(changes, ElementsAre("+ua@11", "+ub@242"));
}

TEST_F(ReflectorTest, ABookmarkMovesThePlace) {
  answer_list("10", {});
  transport.stream({bytes(fixtures::bookmark + "\n"), end(20s)});
  answer_silence();
  run_for(30s);
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=241&"));
  EXPECT_EQ(batches, 4u) << "list, connected, disconnected, connected: a bookmark changes nothing";
}

TEST_F(ReflectorTest, AProperEndIsFollowedAtOnce) {
  answer_list("10", {});
  const auto mark = bytes(fixtures::bookmark + "\n", 60s);
  transport.stream({mark, mark, mark, mark, end(9s)});
  answer_silence();
  run_for(260s);
  ASSERT_EQ(transport.watches().size(), 2u);
  EXPECT_EQ(asked_at(transport.watches()[1]), 249s);
  EXPECT_EQ(reflector.health().reconnects, 1u);
  EXPECT_EQ(reflector.health().relists, 0u);
}

TEST_F(ReflectorTest, WatchesThatEndEarlyDoNotMakeABusyLoop) {
  for (const Duration life : {Duration(0s), Duration(3s)}) {
    haulout::testing::ScriptedTransport server(clock);
    Client other(server, clock);
    Reflector<Pod> shaken(
        other, rng, {.field_selector = "spec.nodeName=n1"}, [](const std::string&, const Pod*) {}, [] {});
    server.answer(json_response(200, fixtures::list("PodList", "10", "")));
    for (int i = 0; i < 400; ++i) server.stream({end(life)});
    const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      const auto child = [&]() -> boost::asio::awaitable<void> { (void)co_await shaken.run(); };
      group.spawn(child());
      co_await clock.sleep_until(clock.now() + 600s);
    };
    run(with_task_group(body));
    EXPECT_THAT(server.watches().size(), AllOf(Ge(15u), Le(120u)));
    EXPECT_EQ(server.lists().size(), 1u);
    EXPECT_TRUE(shaken.health().error);
  }
}

TEST_F(ReflectorTest, ALostConnectionGoesOnFromTheLastEvent) {
  answer_list("10", {});
  const auto half = added("b", "ub", "12").substr(0, 50);
  transport.stream({bytes(added("a", "ua", "11") + half), reset(20s)});
  transport.stream({bytes(added("b", "ub", "12"))});
  run_for(60s);
  EXPECT_THAT(changes, ElementsAre("+ua@11", "+ub@12"));
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=11&"));
  EXPECT_THAT(asked_at(transport.watches()[1]), AllOf(Ge(20s + 10ms), Le(20s + 800ms)));
  EXPECT_EQ(transport.lists().size(), 1u);
  EXPECT_FALSE(reflector.health().error);
}

TEST_F(ReflectorTest, HalfALineAtAProperEndIsDiscarded) {
  answer_list("10", {});
  transport.stream({bytes(added("a", "ua", "11") + "{\"type\":\"ADD"), end(20s)});
  transport.stream({bytes(added("b", "ub", "12"))});
  run_for(60s);
  EXPECT_THAT(changes, ElementsAre("+ua@11", "+ub@12"));
  EXPECT_EQ(transport.lists().size(), 1u);
}

TEST_F(ReflectorTest, AnExpiredPlaceMeansAList) {
  answer_list("10", {fixtures::pod("a", "ua", "1"), fixtures::pod("b", "ub", "2")});
  transport.stream({bytes(fixtures::expired_event + "\n"), end()});
  answer_list("20", {fixtures::pod("b", "ub", "2"), fixtures::pod("a", "ua2", "15"), fixtures::pod("c", "uc", "16")});
  answer_silence();
  run_for(30s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "+ub@2", "-ua", "+ua2@15", "+uc@16"));
  EXPECT_THAT(transport.lists()[1].request.target, Not(HasSubstr("resourceVersion")));
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=20&"));
  EXPECT_GT(asked_at(transport.lists()[1]), 0s);
  EXPECT_EQ(reflector.health().relists, 1u);
}

TEST_F(ReflectorTest, AnExpiredPlaceMayBeAnHttpStatus) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.refuse_stream(410, fixtures::expired_list);
  answer_list("20", {});
  answer_silence();
  run_for(30s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "-ua"));
}

TEST_F(ReflectorTest, OtherErrorsGoOnFromTheLastEvent) {
  answer_list("10", {});
  transport.stream({bytes(added("a", "ua", "11") + fixtures::event("ERROR", fixtures::shutting_down) + "\n")});
  transport.refuse_stream(503, fixtures::shutting_down);
  answer_silence();
  run_for(30s);
  EXPECT_EQ(transport.lists().size(), 1u);
  EXPECT_THAT(transport.watches()[2].request.target, HasSubstr("resourceVersion=11&"));
}

TEST_F(ReflectorTest, GarbageIsLeftBehindByAList) {
  for (const std::string line : {"<html>", "{\"type\":\"ADDED\"}", "{\"kind\":\"Status\"}"}) {
    answer_list("10", {});
    transport.stream({bytes(line + "\n")});
  }
  answer_list("11", {});
  answer_silence();
  run_for(60s);
  EXPECT_EQ(transport.lists().size(), 4u);
  EXPECT_TRUE(reflector.health().connected);
}

TEST_F(ReflectorTest, AnEndlessLineIsCutOff) {
  answer_list("10", {});
  transport.stream({bytes(std::string(5 * 1024 * 1024, 'x'))});
  answer_list("11", {});
  answer_silence();
  run_for(60s);
  EXPECT_EQ(transport.lists().size(), 2u);
}

// P12: after the list, another client creates many objects in the collection. When they take more memory than the
// client may use, the Reflector ends the watch and lists again.
TEST_F(ReflectorTest, AWatchThatBringsTooMuchIsLeftBehindByAList) {
  answer_list("10", {});
  std::string events;
  for (int i = 11; i < 2'000; ++i) events += added("p" + std::to_string(i), "u" + std::to_string(i), std::to_string(i));
  transport.stream({bytes(events)});
  answer_list("2000", {});
  answer_silence();
  run_for(60s);
  EXPECT_EQ(transport.lists().size(), 2u);
  EXPECT_TRUE(reflector.objects().empty());
}

TEST_F(ReflectorTest, AWatchThatIsAWebPageIsNone) {
  answer_list("10", {});
  transport.refuse_stream(502, "<html>");
  transport.stream({bytes("<html>login</html>\n")});
  answer_list("11", {});
  answer_silence();
  run_for(60s);
  EXPECT_TRUE(reflector.health().connected);
}

// The connection may be dead, or the server has not reached the resourceVersion. In both cases the watch is silent.
// After 100 s of silence, the Reflector lists again.
TEST_F(ReflectorTest, SilenceMeansAList) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.stream({bytes(added("b", "ub", "11"), 30s)});
  answer_list("20", {fixtures::pod("b", "ub", "11")});
  answer_silence();
  run_for(140s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "+ub@11", "-ua"));
  EXPECT_THAT(asked_at(transport.lists()[1]), AllOf(Ge(130s), Le(131s)));
  EXPECT_THAT(transport.watches()[1].request.target, HasSubstr("resourceVersion=20&"));
}

TEST_F(ReflectorTest, AWatchThatOutlivesItsTimeoutIsDead) {
  answer_list("10", {});
  transport.stream(std::vector<Step>(10, bytes(fixtures::bookmark + "\n", 60s)));
  answer_list("20", {});
  answer_silence();
  run_for(310s);
  EXPECT_EQ(transport.lists().size(), 2u);
  EXPECT_THAT(asked_at(transport.lists()[1]), AllOf(Ge(242s), Le(301s)));
}

TEST_F(ReflectorTest, RepetitionsChangeNothing) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.stream(
      {bytes(added("a", "ua", "1") + modified("a", "ua", "11") + modified("a", "ua", "11") + deleted("b", "ub", "12") +
             deleted("a", "ua", "13") + modified("a", "ua", "11") + added("a", "ua", "1") + deleted("a", "ua", "13"))});
  run_for(5s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "+ua@11", "-ua"));
  EXPECT_THAT(reflector.objects(), IsEmpty());
}

TEST_F(ReflectorTest, ANamesakeSaysThatTheOldOneHasVanished) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.stream({bytes(added("a", "ua2", "11") + deleted("a", "ua", "12") + modified("a", "ua2", "13"))});
  run_for(5s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "-ua", "+ua2@11", "+ua2@13"));
}

TEST_F(ReflectorTest, AListThatBringsBackADeletedOneIsRight) {
  answer_list("10", {fixtures::pod("a", "ua", "1")});
  transport.stream({bytes(deleted("a", "ua", "11") + fixtures::expired_event + "\n")});
  answer_list("20", {fixtures::pod("a", "ua", "1")});
  transport.stream({bytes(modified("a", "ua", "21"))});
  run_for(30s);
  EXPECT_THAT(changes, ElementsAre("+ua@1", "-ua", "+ua@1", "+ua@21"));
}

TEST_F(ReflectorTest, WhatAListTellsIsToldFromEvents) {
  std::vector<std::optional<TimePoint>> asked;
  Reflector<Pod> told(
      client, rng, {.field_selector = "spec.nodeName=n1"},
      [&](const std::string&, const Pod*) { asked.push_back(told.list_asked()); }, [] {});
  const TimePoint begun = clock.now();
  answer_list("10", {fixtures::pod("a", "ua", "1")}, 2s);
  transport.stream({bytes(modified("a", "ua", "11"))});
  run(with_task_group([&](TaskGroup& group) {
    group.spawn([](Reflector<Pod>& view) -> boost::asio::awaitable<void> { (void)co_await view.run(); }(told));
    return clock.sleep_until(start + 10s);
  }));
  EXPECT_THAT(asked, ElementsAre(std::optional(begun), std::nullopt));
}

}  // namespace
}  // namespace haulout::k8s
