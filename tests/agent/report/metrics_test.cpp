#include "agent/report/metrics.hpp"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  // Sets every metric that an agent can show.
  void show_all() {
    metrics.show({State::draining, "BlockedByBudget", "", WallTime(1700000000s)});
    metrics.show_need(Need::yes);
    metrics.show_slot(true);
    metrics.show_api(true);
    metrics.show_authority("impersonation");
    metrics.show_pool("web");
    metrics.show_record(record());
    metrics.show_drain({.to_evict = 10, .vanished = 3, .terminating = 2, .waiting = 1, .skipped = 4});
    metrics.show_waiting_pods({{"BlockedByBudget", 1}});
    metrics.show_diagnoses({{"BudgetNeverAllows", 2}});
    metrics.drain_ended(true, 90s);
    metrics.update_ended("succeeded");
    metrics.count_request("patch", "nodes", "200");
    metrics.count_eviction("refused");
    metrics.count_event("written");
    metrics.show_process({.cpu_seconds = 1.5, .resident_bytes = 1e7, .start_time_seconds = 1.7e9});
  }

  static Record record() {
    Record record;
    record.needed_since = WallTime(1699990000s);
    record.drain_took = 754s;
    record.attempts = {{WallTime(1699000000s), "Updated", ""},
                       {WallTime(1699100000s), "DrainBlocked", "pod shop/db-0"}};
    return record;
  }

  Metrics metrics{{.node = "n1", .version = "1.2.3"}};
};

TEST_F(MetricsTest, EveryRowOfTheTableIsThereAndNothingElse) {
  show_all();
  std::set<std::string> shown, wanted;
  std::istringstream text(metrics.text());
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("# TYPE ")) shown.insert(line.substr(7));
  for (const MetricRow& row : metric_table())
    wanted.insert(std::string(row.name) + " " + std::string(to_string(row.type)));
  EXPECT_EQ(shown, wanted);
}

// Each metric has exactly the labels of the table.
TEST_F(MetricsTest, TheLabelsAreThoseOfTheTable) {
  show_all();
  const std::string text = metrics.text();
  for (const MetricRow& row : metric_table()) {
    std::set<std::string> wanted;
    std::istringstream names{std::string(row.labels)};
    for (std::string name; std::getline(names, name, ',');) wanted.insert(name);
    if (row.name.starts_with("haulout_")) wanted.insert("node");
    std::istringstream lines(text);
    bool found = false;
    for (std::string line; std::getline(lines, line);) {
      const std::string name = line.substr(0, line.find_first_of("{ "));
      if (name != row.name && name != std::string(row.name) + "_count") continue;
      found = true;
      std::set<std::string> labels;
      for (std::size_t at = line.find('{'); at != std::string::npos && line[at] != '}';) {
        const std::size_t equals = line.find('=', at);
        labels.insert(line.substr(at + 1, equals - at - 1));
        at = line.find('"', equals + 2) + 1;
      }
      EXPECT_EQ(labels, wanted) << line;
    }
    EXPECT_TRUE(found) << row.name;
  }
}

TEST_F(MetricsTest, Values) {
  show_all();
  const std::string text = metrics.text();
  for (const char* line : {
           "haulout_build_info{node=\"n1\",version=\"1.2.3\"} 1\n",
           "haulout_pool_info{node=\"n1\",pool=\"web\"} 1\n",
           "haulout_update_needed_since_timestamp_seconds{node=\"n1\"} 1699990000\n",
           "haulout_last_drain_duration_seconds{node=\"n1\"} 754\n",
           "haulout_last_attempt_timestamp_seconds{node=\"n1\",reason=\"DrainBlocked\"} 1699100000\n",
           "haulout_state{node=\"n1\",state=\"draining\"} 1\n",
           "haulout_state{node=\"n1\",state=\"idle\"} 0\n",
           "haulout_state_since_timestamp_seconds{node=\"n1\"} 1700000000\n",
           "haulout_reason_info{node=\"n1\",concern=\"waiting\",reason=\"BlockedByBudget\",state=\"draining\"} 1\n",
           "haulout_degraded{node=\"n1\"} 0\n",
           "haulout_reboot_required{node=\"n1\"} 1\n",
           "haulout_backend_up{node=\"n1\"} 1\n",
           "haulout_api_up{node=\"n1\"} 1\n",
           "haulout_slot_held{node=\"n1\"} 1\n",
           "haulout_drain_pods{node=\"n1\",phase=\"queued\"} 4\n",
           "haulout_drain_pods{node=\"n1\",phase=\"vanished\"} 3\n",
           "haulout_drain_waiting_pods{node=\"n1\",reason=\"BlockedByBudget\"} 1\n",
           "haulout_diagnosis{node=\"n1\",code=\"BudgetNeverAllows\",concern=\"trouble\"} 2\n",
           "haulout_drain_duration_seconds_bucket{node=\"n1\",result=\"drained\",le=\"120\"} 1\n",
           "haulout_drain_duration_seconds_sum{node=\"n1\",result=\"drained\"} 90\n",
           "haulout_updates_total{node=\"n1\",result=\"succeeded\"} 1\n",
           "haulout_updates_total{node=\"n1\",result=\"failed\"} 0\n",
           "haulout_evictions_total{node=\"n1\",result=\"refused\"} 1\n",
           "haulout_api_requests_total{node=\"n1\",code=\"200\",resource=\"nodes\",verb=\"patch\"} 1\n",
           "haulout_events_total{node=\"n1\",result=\"written\"} 1\n",
           "process_cpu_seconds_total 1.5\n",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(MetricsTest, WhatIsOverIsGone) {
  show_all();
  metrics.show({State::idle, "", "", WallTime(1700000100s)});
  metrics.show_need(Need::unknown);
  metrics.show_waiting_pods({});
  metrics.show_diagnoses({});
  metrics.show_pool("");
  metrics.show_record({});
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("haulout_state{node=\"n1\",state=\"draining\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("haulout_backend_up{node=\"n1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("haulout_pool_info{node=\"n1\",pool=\"\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pool=\"web\"")));
  for (const char* name : {"haulout_reason_info{", "haulout_reboot_required{", "haulout_drain_waiting_pods{",
                           "haulout_diagnosis{", "haulout_update_needed_since_timestamp_seconds{",
                           "haulout_last_drain_duration_seconds{", "haulout_last_attempt_timestamp_seconds{"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
}

TEST_F(MetricsTest, AReasonTakesThePlaceOfTheOneBefore) {
  metrics.show({State::pending, "Paused", "", {}});
  metrics.show({State::pending, "OutsideWindow", "", {}});
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("reason=\"OutsideWindow\""));
  EXPECT_THAT(text, Not(HasSubstr("reason=\"Paused\"")));
  EXPECT_THAT(text, Not(HasSubstr("haulout_state_since_timestamp_seconds{"))) << "nobody knows since when";
}

// Queries that choose a pool must not lose an agent that has not read its Node yet.
TEST_F(MetricsTest, ThePoolIsEmptyAtFirst) {
  EXPECT_THAT(metrics.text(), HasSubstr("haulout_pool_info{node=\"n1\",pool=\"\"} 1\n"));
}

// One series for each reason that an attempt ever had would never end.
TEST_F(MetricsTest, OnlyTheLastAttemptIsShown) {
  Record of_now = record();
  metrics.show_record(of_now);
  of_now.attempts.push_back({WallTime(1699200000s), "Updated", "version 2 runs"});
  metrics.show_record(of_now);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("haulout_last_attempt_timestamp_seconds{node=\"n1\",reason=\"Updated\"} 1699200000\n"));
  EXPECT_THAT(text, Not(HasSubstr("DrainBlocked")));
}

TEST_F(MetricsTest, CpuTimeNeverFalls) {
  metrics.show_process({.cpu_seconds = 2});
  metrics.show_process({.cpu_seconds = 1});
  metrics.show_process({.cpu_seconds = 3});
  EXPECT_THAT(metrics.text(), HasSubstr("process_cpu_seconds_total 3\n"));
}

}  // namespace
}  // namespace haulout::agent
