#include "agent/report/open_metrics.hpp"

#include <gmock/gmock.h>

#include "agent/report/metrics.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AcceptHeader, OpenMetricsIsServedToWhoPrefersIt) {
  for (const char* accept : {
           // Prometheus 2.42, 2.50 and 3.4
           "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
           "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
           "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
           "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
           "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
           "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
           "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
           "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
           "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5",
           "application/openmetrics-text",
           "Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=0.4 , text/plain;q=0.3",
           "text/plain;q=0,*/*,application/openmetrics-text;q=0.1",
           "text/*;q=0.1,*/*,application/openmetrics-text;q=0.2",
           "text/plain;version=1.0.0,application/openmetrics-text;q=0.1",
           ",application/openmetrics-text,",
       })
    EXPECT_TRUE(prefers_open_metrics(accept)) << accept;
}

TEST(AcceptHeader, EverybodyElseGetsTheOldFormat) {
  for (const char* accept : {
           "",
           "*/*",
           "text/plain",
           "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
           "application/*",
           "application/openmetrics-text;version=0.0.1",
           "application/openmetrics-text;version=2.0.0",
           "application/openmetrics-text;q=0",
           "application/openmetrics-text,text/plain",
           "application/openmetrics-text;q=0.5,*/*",
           "application/openmetrics-text;q=0.5,text/*;q=0.9",
           "application/openmetrics-text;q=0.5,text/plain;version=0.0.4;q=0.6,*/*;q=0.1",
           "application/openmetrics-text;q=0.5,text/plain;q=0.1,text/plain;version=0.0.4;q=0.6",
           // Malformed ones.
           "application/openmetrics-text;q=high",
           "application/openmetrics-text;q=",
           "application/openmetrics-text;q",
           "application/openmetrics-text;q=1.5",
           "application/openmetrics-text;q=-1",
           "application/openmetrics-text;q=nan",
           "application/openmetrics-text,text/plain;q=0.5x",
           "application/openmetrics-text,plain",
           "application/openmetrics-text;comment=\"a,b\"",
           "openmetrics-text",
           ";;;",
           "\xff\x01",
       })
    EXPECT_FALSE(prefers_open_metrics(accept)) << accept;
}

TEST(OpenMetrics, WhatIsDifferent) {
  struct Row {
    const char* text;
    const char* open;
  };
  for (const Row& row : {
           Row{"", "# EOF\n"},
           // The family of a counter has no suffix; its samples do.
           {"# HELP a_total How \\\\ often.\n# TYPE a_total counter\na_total{b=\"c\"} 3\n",
            "# HELP a How \\\\ often.\n# TYPE a counter\na_total{b=\"c\"} 3\n# EOF\n"},
           {"# TYPE cpu_seconds_total counter\ncpu_seconds_total 1.5\n",
            "# TYPE cpu_seconds counter\n# UNIT cpu_seconds seconds\ncpu_seconds_total 1.5\n# EOF\n"},
           {"# HELP a Says \"x\"\\nand  y.\n# TYPE a gauge\na 1\n",
            "# HELP a Says \\\"x\\\"\\nand  y.\n# TYPE a gauge\na 1\n# EOF\n"},
           {"# TYPE memory_bytes gauge\nmemory_bytes 7\n",
            "# TYPE memory_bytes gauge\n# UNIT memory_bytes bytes\nmemory_bytes 7\n# EOF\n"},
           {"# TYPE milliseconds gauge\nmilliseconds 7\n", "# TYPE milliseconds gauge\nmilliseconds 7\n# EOF\n"},
           {"# TYPE bytes gauge\nbytes 7\n", "# TYPE bytes gauge\nbytes 7\n# EOF\n"},
           // Limits of buckets.
           {"a_bucket{b=\"c\",le=\"10\"} 4\na_bucket{le=\"0.5\"} 4\na_bucket{le=\"+Inf\"} 4\na_count 4\n",
            "a_bucket{b=\"c\",le=\"10.0\"} 4\na_bucket{le=\"0.5\"} 4\na_bucket{le=\"+Inf\"} 4\na_count 4\n# EOF\n"},
           {"a_bucket{title=\",le=\\\"7\",le=\"10\"} 4\n", "a_bucket{title=\",le=\\\"7\",le=\"10.0\"} 4\n# EOF\n"},
           // No bucket of a histogram.
           {"water_bucket 3\nwater_bucket{title=\"10\"} 3\na{le=\"10\"} 4\n",
            "water_bucket 3\nwater_bucket{title=\"10\"} 3\na{le=\"10\"} 4\n# EOF\n"},
           {"a{b=\"# HELP x_total\"} 1", "a{b=\"# HELP x_total\"} 1\n# EOF\n"},
       })
    EXPECT_EQ(open_metrics(row.text), row.open) << row.text;
}

// OpenMetrics requires the suffix of each counter, and no other metric may have it.
TEST(OpenMetrics, OnlyCountersHaveTheSuffixOfCounters) {
  for (const MetricRow& row : metric_table())
    EXPECT_EQ(row.name.ends_with("_total"), row.type == MetricType::counter) << row.name;
}

TEST(OpenMetrics, MetricsOfAnAgent) {
  Metrics metrics{{.node = "n1", .version = "1.2.3"}};
  metrics.update_ended("succeeded");
  metrics.drain_ended(true, 90s);
  const std::string text = open_metrics(metrics.text());
  for (const char* line : {
           "# TYPE haulout_build_info gauge\nhaulout_build_info{node=\"n1\",version=\"1.2.3\"} 1\n",
           "# TYPE haulout_updates counter\n",
           "haulout_updates_total{node=\"n1\",result=\"succeeded\"} 1\n",
           "# UNIT haulout_drain_duration_seconds seconds\n",
           "haulout_drain_duration_seconds_bucket{node=\"n1\",result=\"drained\",le=\"120.0\"} 1\n",
           "haulout_drain_duration_seconds_bucket{node=\"n1\",result=\"drained\",le=\"+Inf\"} 1\n",
       })
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
  EXPECT_THAT(text, Not(HasSubstr("\n\n")));
  for (const MetricRow& row : metric_table())
    if (row.type == MetricType::counter) EXPECT_THAT(text, Not(HasSubstr("# TYPE " + std::string(row.name))));
}

}  // namespace
}  // namespace haulout::agent
