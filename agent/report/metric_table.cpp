#include <fmt/format.h>

#include <array>

#include "agent/report/metrics.hpp"

namespace haulout::agent {
namespace {

using enum MetricType;

constexpr std::array table{
    MetricRow{"haulout_build_info", gauge, "version", "Always 1; the version is a label."},
    MetricRow{"haulout_authority_info", gauge, "authority", "Always 1; by what authority the agent acts is a label."},
    MetricRow{"haulout_state", gauge, "state", "1 for the state in which the node is, 0 for the others."},
    MetricRow{"haulout_state_since_timestamp_seconds", gauge, "", "When the node entered its state, in Unix time."},
    MetricRow{"haulout_reason_info", gauge, "state,reason,concern",
              "Always 1; why the node is where it is. Absent when nothing stands in its way. The concern is progress, "
              "waiting (by somebody's wish) or trouble (it may not end by itself: ● in [reasons.md](reasons.md))."},
    MetricRow{"haulout_degraded", gauge, "", "1 if the node is degraded: a person has to look."},
    MetricRow{"haulout_reboot_required", gauge, "",
              "1 if the operating system wants a reboot, 0 if not. Absent while nobody knows."},
    MetricRow{"haulout_backend_up", gauge, "",
              "1 if the operating system's update tool gave an answer when it was last "
              "asked."},
    MetricRow{"haulout_api_up", gauge, "", "0 if no request to the API server was answered for half a minute."},
    MetricRow{"haulout_slot_held", gauge, "", "1 if the node has a turn. Absent until it is known."},
    MetricRow{"haulout_drain_pods", gauge, "phase",
              "Pods of the drain under way: queued, waiting, terminating, vanished, and skipped ones."},
    MetricRow{"haulout_drain_waiting_pods", gauge, "reason", "Pods that cannot be evicted now, by the reason why."},
    MetricRow{"haulout_diagnosis", gauge, "code,concern",
              "Findings of the drain under way, what holds it up and why, by their code. Their concern is trouble, "
              "unless they are harmless."},
    MetricRow{"haulout_drain_duration_seconds", histogram, "result",
              "How long drains took, whether they ended drained or otherwise."},
    MetricRow{"haulout_updates_total", counter, "result",
              "Updates that ended: succeeded, failed (the node became degraded), given_up (before the reboot was asked "
              "for)."},
    MetricRow{"haulout_evictions_total", counter, "result", "Evictions: accepted, refused, or unanswered."},
    MetricRow{"haulout_api_requests_total", counter, "verb,resource,code",
              "Requests to the API server; the code is the HTTP status, or what went wrong instead."},
    MetricRow{"haulout_events_total", counter, "result",
              "Events for the Node: written, failed, or dropped because there were too many."},
    MetricRow{"process_cpu_seconds_total", counter, "", "Total user and system CPU time spent in seconds."},
    MetricRow{"process_resident_memory_bytes", gauge, "", "Resident memory size in bytes."},
    MetricRow{"process_virtual_memory_bytes", gauge, "", "Virtual memory size in bytes."},
    MetricRow{"process_open_fds", gauge, "", "Number of open file descriptors."},
    MetricRow{"process_max_fds", gauge, "", "Maximum number of open file descriptors."},
    MetricRow{"process_start_time_seconds", gauge, "", "Start time of the process since unix epoch in seconds."},
};

constexpr std::string_view head = R"(# Metrics

This page is made from the table of metrics in `agent/report/`; a test compares the two.

With `--metrics-address`, for example `:9797` as in the shipped DaemonSet, the agent serves on that address

| path | what |
|---|---|
| `/metrics` | the metrics below, in the text format of Prometheus |
| `/healthz` | 200 as long as the agent's one loop turns: whoever gets no answer may restart it |
| `/readyz` | 200 if the API server answers and the operating system's update tool has been asked; otherwise 503, and the body says what is missing. A tool that cannot tell whether a reboot is needed is no reason for 503: see `haulout_backend_up` |

Every `haulout_` metric has the label `node` besides those in the table. An agent is restarted by each reboot of its
node, so counters start anew then, as `rate()` and `increase()` expect.

Alerts to start from are in `packaging/prometheus/haulout.rules.yaml`.
)";

std::string labels_of(const MetricRow& row) {
  std::string text;
  std::string_view rest = row.labels;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

}  // namespace

std::string_view to_string(MetricType type) {
  switch (type) {
    case gauge: return "gauge";
    case counter: return "counter";
    case histogram: return "histogram";
  }
  return "";
}

std::span<const MetricRow> metric_table() {
  return table;
}

std::string metrics_page() {
  std::string page(head);
  page += "\n| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricRow& row : table)
    page += fmt::format("| `{}` | {} | {} | {} |\n", row.name, to_string(row.type), labels_of(row), row.help);
  return page;
}

}  // namespace haulout::agent
