// The Prometheus metrics of an agent, including the resource use of its process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/node/node_status.hpp"
#include "agent/node/record.hpp"
#include "drain/observer.hpp"

namespace haulout::agent {

// Resource use of this process, from /proc, for the process_ metrics that all Prometheus clients have. Reading it takes
// little time and does not access a disk.
struct ProcessFigures {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double start_time_seconds = 0;  // Unix time
};

// Units in which the kernel counts.
struct KernelUnits {
  double ticks_per_second = 100;
  double page_bytes = 4096;
};

// Parses the text of /proc/self/stat and /proc/stat. Returns nothing if their format is not as expected. Leaves
// open_fds and max_fds 0, because the texts do not contain them. Pure.
std::optional<ProcessFigures> parse_process_stat(std::string_view self_stat, std::string_view stat, KernelUnits units);

// Reads the resource use of this process now. Returns nothing if /proc cannot be read.
std::optional<ProcessFigures> read_process_figures();

// The Prometheus metrics of an agent. Names, types and labels are in one table, from which docs/metrics.md is
// generated, too. The number of series is bounded: no label contains a pod's name, and the only node name is that of
// this node. No function suspends or fails.
enum class MetricType { gauge, counter, histogram };
std::string_view to_string(MetricType type);

struct MetricRow {
  std::string_view name;
  MetricType type = MetricType::gauge;
  std::string_view labels;  // in addition to `node`, separated by commas
  std::string_view help;
};
std::span<const MetricRow> metric_table();
// Returns the text of docs/metrics.md.
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
  void show_pool(const std::string& pool);  // empty if the node is in none
  // Shows what the record keeps over a reboot.
  void show_record(const Record& record);

  void show_drain(const drain::Progress& progress);
  void show_waiting_pods(const std::map<std::string, std::size_t>& by_reason);
  void show_diagnoses(const std::map<std::string, std::size_t>& by_code);
  void drain_ended(bool drained, Duration took);
  void update_ended(std::string_view result);  // succeeded, failed, given_up

  // `code` is the HTTP status, or the error if there was no response.
  void count_request(const std::string& verb, const std::string& resource, const std::string& code);
  void count_eviction(std::string_view result);  // accepted, refused, unanswered
  void count_event(std::string_view result);

  void show_process(const ProcessFigures& figures);
  // Returns all metrics in Prometheus' text format, version 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace haulout::agent
