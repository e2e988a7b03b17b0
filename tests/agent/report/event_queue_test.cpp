// Tests the queue against the simulated API server, which validates Events as the real one does and lets them expire.
#include "agent/report/event_queue.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "retry/task_group.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

EventNote a_note(std::string reason = "BlockedByBudget", std::string note = "pod shop/web-0: blocked") {
  return {k8s::NodeEvent::Type::warning, std::move(reason), "Draining", std::move(note)};
}

class EventQueueTest : public haulout::testing::VirtualTimeTest {
 protected:
  EventQueueTest() { cluster.create("namespaces", {{"metadata", {{"name", "default"}}}}); }

  // Runs the queue for `time`, together with `script`.
  void run_for(Duration time, std::function<boost::asio::awaitable<void>()> script) {
    run(with_task_group([&, time](TaskGroup& group) {
      group.spawn(cluster.run());
      group.spawn(queue.run());
      group.spawn(script());
      return wait(time);
    }));
  }
  boost::asio::awaitable<void> wait(Duration time) { co_await clock.sleep_until(clock.now() + time); }
  std::vector<Json> events() const {
    const auto found = cluster.all("events");
    return {found.begin(), found.end()};
  }

  SeededRng rng{1};
  sim::TestCluster cluster{context.get_executor(), clock, rng};
  k8s::Client client{cluster.api(), clock, {.validation = k8s::FieldValidation::strict}};
  std::vector<EventResult> results;
  EventQueue queue{
      context.get_executor(), client, rng, {.node = "n1", .instance = "haulout-abcde"}, [this](EventResult result) {
        results.push_back(result);
      }};
};

TEST_F(EventQueueTest, AnEventIsWrittenAboutTheNode) {
  run_for(10s, [&]() -> boost::asio::awaitable<void> {
    queue.push(a_note());
    co_return;
  });
  ASSERT_THAT(events(), SizeIs(1));
  const Json event = events()[0];
  EXPECT_EQ(event["regarding"]["kind"], "Node");
  EXPECT_EQ(event["regarding"]["name"], "n1");
  EXPECT_EQ(event["regarding"]["uid"], "n1");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "BlockedByBudget");
  EXPECT_EQ(event["action"], "Draining");
  EXPECT_EQ(event["note"], "pod shop/web-0: blocked");
  EXPECT_EQ(event["reportingController"], "haulout.dev/agent");
  EXPECT_EQ(event["reportingInstance"], "haulout-abcde");
  EXPECT_THAT(results, ElementsAre(EventResult::written));
}

TEST_F(EventQueueTest, TheSameAgainIsCountedOnTheFirst) {
  run_for(1h, [&]() -> boost::asio::awaitable<void> {
    for (int i = 0; i < 4; ++i) {
      queue.push(a_note());
      co_await wait(5min);
    }
  });
  ASSERT_THAT(events(), SizeIs(1));
  EXPECT_EQ(events()[0]["series"]["count"], 4);
}

TEST_F(EventQueueTest, AnotherNoteIsAnotherEvent) {
  run_for(1min, [&]() -> boost::asio::awaitable<void> {
    queue.push(a_note("BlockedByBudget", "pod shop/web-0"));
    queue.push(a_note("BlockedByBudget", "pod shop/web-1"));
    co_return;
  });
  EXPECT_THAT(events(), SizeIs(2));
}

TEST_F(EventQueueTest, AnEventThatHasExpiredIsWrittenAnew) {
  run_for(4h, [&]() -> boost::asio::awaitable<void> {
    queue.push(a_note());
    co_await wait(3h);
    queue.push(a_note());
  });
  EXPECT_THAT(events(), SizeIs(1));
  EXPECT_THAT(results, SizeIs(2));
  EXPECT_THAT(results, Each(EventResult::written));
}

TEST_F(EventQueueTest, AnEventThatSomebodyDeletedIsWrittenAnew) {
  run_for(10min, [&]() -> boost::asio::awaitable<void> {
    queue.push(a_note());
    co_await wait(1min);
    cluster.remove("events", "default", events().at(0)["metadata"]["name"].get<std::string>());
    queue.push(a_note());
  });
  EXPECT_THAT(events(), SizeIs(1));
}

TEST_F(EventQueueTest, ANoteThatIsTooLongIsCut) {
  run_for(10s, [&]() -> boost::asio::awaitable<void> {
    queue.push(a_note("BlockedByBudget", std::string(5000, 'x')));
    co_return;
  });
  EXPECT_THAT(results, ElementsAre(EventResult::written));
}

// P10: the queue sends a burst of Events slowly, and drops the oldest Events of a flood.
TEST_F(EventQueueTest, ABurstIsSpreadAndAFloodIsCut) {
  std::vector<std::size_t> written_after;
  run_for(30min, [&]() -> boost::asio::awaitable<void> {
    for (int i = 0; i < 100; ++i) queue.push(a_note("BlockedByBudget", "pod " + std::to_string(i)));
    co_await wait(5s);
    written_after.push_back(events().size());
    co_await wait(30s);
    written_after.push_back(events().size());
  });
  EXPECT_THAT(written_after, ElementsAre(10u, 11u));
  EXPECT_THAT(events(), SizeIs(20));
  EXPECT_EQ(std::count(results.begin(), results.end(), EventResult::dropped), 80);
  // The queue has kept the last Events.
  for (const Json& event : events()) EXPECT_GE(std::stoi(event["note"].get<std::string>().substr(4)), 80);
}

class EventAnswersTest : public haulout::testing::VirtualTimeTest {
 protected:
  void run_for(Duration time) {
    run(with_task_group([&, time](TaskGroup& group) {
      group.spawn(queue.run());
      queue.push(a_note());
      return wait(time);
    }));
  }
  boost::asio::awaitable<void> wait(Duration time) { co_await clock.sleep_until(clock.now() + time); }
  static std::string status(int code, const std::string& reason) {
    return Json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
                {"reason", reason}, {"code", code},       {"message", "no"}}
        .dump();
  }
  static std::string event() {
    return Json{{"kind", "Event"},
                {"apiVersion", "events.k8s.io/v1"},
                {"metadata", {{"name", "n1.1"}, {"namespace", "default"}, {"uid", "u"}}}}
        .dump();
  }

  haulout::testing::ScriptedTransport transport{clock};
  SeededRng rng{1};
  k8s::Client client{transport, clock};
  std::vector<EventResult> results;
  EventQueue queue{context.get_executor(), client, rng, {.node = "n1", .instance = "host"}, [this](EventResult result) {
                     results.push_back(result);
                   }};
};

TEST_F(EventAnswersTest, ARefusalIsFinal) {
  transport.answer(haulout::testing::json_response(403, status(403, "Forbidden")));
  run_for(1h);
  EXPECT_THAT(transport.requests(), SizeIs(1));
  EXPECT_THAT(results, ElementsAre(EventResult::failed));
}

TEST_F(EventAnswersTest, AnOutageIsWaitedForAndTheNameStays) {
  transport.fail(Error(Errc::reset, "gone"));
  transport.answer(haulout::testing::json_response(503, "busy"));
  transport.answer(haulout::testing::json_response(201, event()));
  run_for(10min);
  ASSERT_THAT(transport.requests(), SizeIs(3));
  EXPECT_THAT(results, ElementsAre(EventResult::written));
  std::vector<std::string> names;
  for (const auto& sent : transport.requests())
    names.push_back(Json::parse(sent.request.body)["metadata"]["name"].get<std::string>());
  EXPECT_THAT(names, Each(names[0]));
}

TEST_F(EventAnswersTest, AnAnswerThatWasLostMakesNoSecondEvent) {
  transport.fail(Error(Errc::timeout, "no answer"));
  transport.answer(haulout::testing::json_response(409, status(409, "AlreadyExists")));
  run_for(10min);
  EXPECT_THAT(results, ElementsAre(EventResult::written));
}

TEST_F(EventAnswersTest, AnOutageThatLastsIsGivenUp) {
  for (int i = 0; i < 60; ++i) transport.fail(Error(Errc::unreachable, "refused"));
  run_for(2h);
  EXPECT_THAT(results, ElementsAre(EventResult::failed));
  EXPECT_LE(transport.requests().back().at - start, 10min);
  EXPECT_LT(transport.requests().size(), 40u);
}

}  // namespace
}  // namespace haulout::agent
