#include "agent/report/reporter.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/report/service_manager.hpp"
#include "retry/task_group.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ReporterTest : public haulout::testing::VirtualTimeTest {
 protected:
  struct Line {
    Severity severity;
    std::string message;
    Log::Fields fields;
  };

  ReporterTest() { cluster.create("namespaces", {{"metadata", {{"name", "default"}}}}); }

  void run_for(Duration time, std::function<void()> script) {
    run(with_task_group([&, time](TaskGroup& group) {
      group.spawn(cluster.run());
      group.spawn(reporter.run());
      script();
      return wait(time);
    }));
  }
  boost::asio::awaitable<void> wait(Duration time) { co_await clock.sleep_until(clock.now() + time); }
  std::vector<std::string> event_reasons() const {
    std::vector<std::string> reasons;
    for (const auto& event : cluster.all("events")) reasons.push_back(event["reason"].get<std::string>());
    return reasons;
  }
  static Status status(State state, std::string reason, WallTime since) {
    return {state, std::move(reason), "", since};
  }
  void drain_event(drain::EventType type, const drain::PodReport* pod, drain::Progress progress) {
    reporter.on_event({.type = type, .at = {}, .node = node, .pod = pod, .message = {}, .progress = progress});
  }

  SeededRng rng{1};
  sim::TestCluster cluster{context.get_executor(), clock, rng};
  k8s::Client client{cluster.api(), clock, {.validation = k8s::FieldValidation::strict}};
  std::string node = "n1";
  std::vector<Line> lines;
  std::vector<std::string> words;  // messages to the service manager
  Reporter reporter{{context.get_executor(), client, rng,
                     [this](Severity severity, const std::string& message, const Log::Fields& fields) {
                       lines.push_back({severity, message, fields});
                     },
                     [this](const std::string& said) { words.push_back(said); }},
                    {.node = "n1", .instance = "haulout-abcde", .version = "1.2.3"}};
};

TEST_F(ReporterTest, OneStatusIsALineAnEventAMetricAndWordsForTheServiceManager) {
  const Status idle = status(State::idle, "", WallTime(1h));
  const Status waiting{State::waiting, "WaitingForSlot", "n2 has the turn", WallTime(2h)};
  run_for(10s, [&] {
    reporter.tell(idle);
    reporter.tell(waiting);
    reporter.tell(waiting);
  });
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[1].message, "waiting, WaitingForSlot: n2 has the turn");
  EXPECT_THAT(words, Contains("STATUS=waiting, WaitingForSlot: n2 has the turn"));
  EXPECT_THAT(event_reasons(), ElementsAre("WaitingForSlot"));
  EXPECT_THAT(reporter.metrics_text(),
              HasSubstr("haulout_reason_info{node=\"n1\",concern=\"waiting\",reason=\"WaitingForSlot\""));
}

TEST_F(ReporterTest, AnAgentThatTakesOverWritesNoEventAboutWhatStandsThere) {
  run_for(10s, [&] { reporter.tell(status(State::degraded, "RebootFailed", WallTime(1h))); });
  EXPECT_THAT(event_reasons(), IsEmpty());
  EXPECT_THAT(lines, SizeIs(1));
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_degraded{node=\"n1\"} 1\n"));
}

TEST_F(ReporterTest, AWarningIsALineAndAnEventAndNoStatus) {
  run_for(10s, [&] {
    reporter.tell(status(State::draining, "Evicting", WallTime(1h)));
    reporter.warn({State::draining, "HookSkipped", "10-notify is not executable", WallTime(1h)});
  });
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[1].severity, Severity::warning);
  EXPECT_EQ(lines[1].message, "10-notify is not executable");
  EXPECT_THAT(event_reasons(), ElementsAre("HookSkipped"));
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("reason=\"Evicting\""));
  EXPECT_THAT(reporter.metrics_text(), Not(HasSubstr("HookSkipped")));
}

TEST_F(ReporterTest, ItIsReadyBeforeTheApiServerIs) {
  run_for(10s, [] {});
  EXPECT_EQ(words.front(), "READY=1");
  reporter.say_goodbye();
  EXPECT_EQ(words.back(), "STOPPING=1");
}

TEST_F(ReporterTest, TheWatchdogIsFedTwiceInItsLimit) {
  run(with_task_group([this](TaskGroup& group) {
    group.spawn(feed_watchdog(clock, 30s, [this](const std::string& said) { words.push_back(said); }));
    return wait(61s);
  }));
  EXPECT_EQ(std::count(words.begin(), words.end(), "WATCHDOG=1"), 5);
}

TEST_F(ReporterTest, AStatusIsOneLineForTheServiceManager) {
  reporter.tell({State::pending, "CannotReboot", "access denied\nREADY=0", {}});
  EXPECT_THAT(words, Contains("STATUS=pending, CannotReboot: access denied READY=0"));
}

TEST_F(ReporterTest, WhatTheRecordKeepsIsAMetric) {
  Record record;
  record.needed_since = WallTime(500s);
  record.drain_took = 90s;
  reporter.see_record("web", record);
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_pool_info{node=\"n1\",pool=\"web\"} 1\n"));
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_update_needed_since_timestamp_seconds{node=\"n1\"} 500\n"));
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_last_drain_duration_seconds{node=\"n1\"} 90\n"));
}

TEST_F(ReporterTest, UpdatesAndDrainsAreCountedWhenTheyEnd) {
  reporter.tell(status(State::draining, "Evicting", WallTime(1000s)));
  reporter.tell(status(State::ready, "", WallTime(1090s)));
  reporter.tell(status(State::rebooting, "", WallTime(1091s)));
  reporter.tell(status(State::verifying, "", WallTime(1200s)));
  reporter.tell(status(State::verifying, "NodeNotReady", WallTime(1200s)));
  reporter.tell(status(State::uncordoning, "", WallTime(1300s)));
  reporter.tell(status(State::soaking, "", WallTime(1300s)));
  reporter.tell(status(State::idle, "", WallTime(1400s)));
  std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_drain_duration_seconds_sum{node=\"n1\",result=\"drained\"} 90\n"));
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"succeeded\"} 1\n"));
  reporter.tell(status(State::draining, "Evicting", WallTime(2000s)));
  reporter.tell(status(State::pending, "DrainBlocked", WallTime(2100s)));
  reporter.tell(status(State::rebooting, "", WallTime(3000s)));
  reporter.tell(status(State::degraded, "RebootFailed", WallTime(3100s)));
  text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_drain_duration_seconds_count{node=\"n1\",result=\"ended\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"given_up\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"failed\"} 1\n"));
}

TEST_F(ReporterTest, AnUpdateIsCountedOnceHoweverOftenItIsVerified) {
  const auto judged = [](State state, const std::string& reason, WallTime since) {
    Status told = status(state, reason, since);
    told.judged = true;
    return told;
  };
  reporter.tell(status(State::verifying, "", WallTime(1200s)));
  reporter.tell(judged(State::uncordoning, "", WallTime(1300s)));
  reporter.tell(judged(State::soaking, "", WallTime(1300s)));
  reporter.tell(judged(State::degraded, "HookFailed", WallTime(1400s)));
  reporter.tell(judged(State::verifying, "", WallTime(9000s)));
  reporter.tell(judged(State::uncordoning, "", WallTime(9001s)));
  reporter.tell(status(State::idle, "", WallTime(9002s)));
  std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"succeeded\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"failed\"} 0\n"));
  reporter.tell(status(State::verifying, "", WallTime(10000s)));
  reporter.tell(judged(State::degraded, "RolledBack", WallTime(10001s)));
  reporter.tell(judged(State::verifying, "", WallTime(11000s)));
  reporter.tell(judged(State::uncordoning, "", WallTime(11001s)));
  text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"succeeded\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"failed\"} 1\n"));
}

TEST_F(ReporterTest, ABootThatNobodyHadAskedForIsNoUpdateThatSucceeded) {
  reporter.tell(status(State::draining, "Evicting", WallTime(1000s)));
  reporter.tell(status(State::verifying, "RebootedMeanwhile", WallTime(1090s)));
  reporter.tell(status(State::verifying, "NodeNotReady", WallTime(1090s)));
  reporter.tell(status(State::uncordoning, "RebootedMeanwhile", WallTime(1200s)));
  reporter.tell(status(State::soaking, "RebootedMeanwhile", WallTime(1200s)));
  reporter.tell(status(State::idle, "", WallTime(1400s)));
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"given_up\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_updates_total{node=\"n1\",result=\"succeeded\"} 0\n"));
}

TEST_F(ReporterTest, ADrainIsShownWhileItLasts) {
  drain::PodReport pod;
  pod.ns = "shop";
  pod.name = "web-0";
  pod.uid = "u";
  pod.reason = "BlockedByBudget";
  reporter.tell(status(State::draining, "", WallTime(1000s)));
  drain_event(drain::EventType::parked, &pod, {.to_evict = 4, .vanished = 1, .waiting = 1});
  std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_drain_pods{node=\"n1\",phase=\"queued\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("haulout_drain_waiting_pods{node=\"n1\",reason=\"BlockedByBudget\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("web-0"))) << "there may be any number of them";
  reporter.tell(status(State::pending, "DrainBlocked", WallTime(1100s)));
  text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("haulout_drain_pods{node=\"n1\",phase=\"queued\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("haulout_drain_waiting_pods{")));
}

TEST_F(ReporterTest, RequestsAreCountedByWhatTheyWere) {
  reporter.see_request({"POST", "/api/v1/namespaces/shop/pods/web-0/eviction", 201});
  reporter.see_request({"POST", "/api/v1/namespaces/shop/pods/web-1/eviction", 429});
  reporter.see_request({"GET", "/api/v1/pods?watch=1", 0, Errc::unreachable});
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("{node=\"n1\",code=\"201\",resource=\"pods/eviction\",verb=\"create\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{node=\"n1\",code=\"unreachable\",resource=\"pods\",verb=\"watch\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_evictions_total{node=\"n1\",result=\"accepted\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("haulout_evictions_total{node=\"n1\",result=\"refused\"} 1\n"));
}

TEST_F(ReporterTest, AnOutageIsSaidOnceAndSoIsItsEnd) {
  const RequestEnd answer{"GET", "/api/v1/nodes/n1", 200};
  const RequestEnd silence{"GET", "/api/v1/nodes/n1", 0, Errc::unreachable};
  const RequestEnd gateway{"GET", "/api/v1/nodes/n1", 503};
  run([&]() -> boost::asio::awaitable<void> {
    reporter.see_request(answer);
    for (int i = 0; i < 20; ++i) {
      reporter.see_request(i % 2 == 0 ? silence : gateway);
      co_await wait(10s);
    }
    EXPECT_THAT(lines, SizeIs(1));
    EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_api_up{node=\"n1\"} 0\n"));
    EXPECT_FALSE(reporter.readiness()[0].problem.empty());
    reporter.see_request(answer);
    reporter.see_request(answer);
  }());
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].severity, Severity::warning);
  EXPECT_TRUE(reporter.readiness()[0].problem.empty());
}

// The agent counts as ready even if its back end cannot tell whether a reboot is needed. That state may last for days,
// and must not stop the roll-out of the agents.
TEST_F(ReporterTest, ItIsReadyOnceTheApiHasAnsweredAndTheBackEndWasAsked) {
  const auto problems = [&] {
    std::vector<std::string> found;
    for (const Check& check : reporter.readiness())
      if (!check.problem.empty()) found.push_back(check.name);
    return found;
  };
  EXPECT_THAT(problems(), ElementsAre("api", "backend"));
  reporter.see_request({"GET", "/api/v1/nodes/n1", 403});
  EXPECT_THAT(problems(), ElementsAre("backend"));
  reporter.see_pending({.need = Need::unknown, .problem = "the package database is locked"});
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(reporter.readiness()[1].note, "the package database is locked");
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_backend_up{node=\"n1\"} 0\n"));
  reporter.see_pending({.need = Need::no});
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_THAT(reporter.metrics_text(), HasSubstr("haulout_reboot_required{node=\"n1\"} 0\n"));
}

}  // namespace
}  // namespace haulout::agent
