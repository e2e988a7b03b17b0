// The Prometheus metrics of an agent. Names, types and labels are in one table, which also generates docs/metrics.md.
// The number of series is bounded: no label contains a pod's name, and the only node name is the own one. Nothing here
// suspends or fails.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "agent/node/node_status.hpp"
#include "agent/report/process_figures.hpp"
#include "drain/observer.hpp"

namespace haulout::agent {

enum class MetricType { gauge, counter, histogram };
std::string_view to_string(MetricType type);

struct MetricRow {
  std::string_view name;
  MetricType type = MetricType::gauge;
  std::string_view labels;  // in addition to `node`, separated by commas
  std::string_view help;
};
std::span<const MetricRow> metric_table();
// The text of docs/metrics.md.
std::string metrics_page();

struct MetricsOptions {
  std::string node{};  // a label of every haulout_ metric
  std::string version{};
};

class Metrics {
 public:
  explicit Metrics(MetricsOptions options);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void show(const Status& status);
  void show_need(Need need);
  void show_slot(bool held);
  void show_api(bool up);
  void show_authority(const std::string& authority);

  void show_drain(const drain::Progress& progress);
  void show_waiting_pods(const std::map<std::string, std::size_t>& by_reason);
  void show_diagnoses(const std::map<std::string, std::size_t>& by_code);
  void drain_ended(bool drained, Duration took);
  void update_ended(std::string_view result);  // succeeded, failed, given_up

  // `code`: the HTTP status, or the error if there was no answer.
  void count_request(const std::string& verb, const std::string& resource, const std::string& code);
  void count_eviction(std::string_view result);  // accepted, refused, unanswered
  void count_event(std::string_view result);

  void show_process(const ProcessFigures& figures);
  // All metrics in Prometheus' text format, version 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace haulout::agent
