#include <fmt/format.h>

#include <array>

#include "agent/report/metrics.hpp"

namespace haulout::agent {
namespace {

using enum MetricType;

constexpr std::array table{
    MetricRow{"haulout_build_info", gauge, "version", "Always 1; the version is a label."},
    MetricRow{"haulout_authority_info", gauge, "authority",
              "Always 1; the authority by which the agent acts is a label."},
    MetricRow{"haulout_state", gauge, "state", "1 for the current state of the node, 0 for the others."},
    MetricRow{"haulout_state_since_timestamp_seconds", gauge, "",
              "Time at which the node entered its state, as a Unix timestamp."},
    MetricRow{"haulout_reason_info", gauge, "state,reason,concern",
              "Always 1; the reason why the node does not go on is a label. Absent if there is no reason. The concern "
              "is progress, waiting (as a person or a policy demands) or trouble (may not end without a person: ● in "
              "[reasons.md](reasons.md))."},
    MetricRow{"haulout_degraded", gauge, "", "1 if the node is degraded: a person has to look at it."},
    MetricRow{"haulout_reboot_required", gauge, "",
              "1 if the operating system needs a reboot, 0 if not. Absent while that is unknown."},
    MetricRow{"haulout_backend_up", gauge, "",
              "1 if the operating system's update tool could tell at the last query whether a reboot is needed."},
    MetricRow{"haulout_api_up", gauge, "",
              "1 if the API server answers, 0 if requests to it have been unanswered for 30 seconds."},
    MetricRow{"haulout_slot_held", gauge, "", "1 if the node holds a slot, 0 if not. Absent until that is known."},
    MetricRow{"haulout_drain_pods", gauge, "phase",
              "Pods of the current drain by phase: queued, waiting, terminating, vanished (deleted) or skipped."},
    MetricRow{"haulout_drain_waiting_pods", gauge, "reason",
              "Pods of the current drain that cannot be evicted now, by reason."},
    MetricRow{"haulout_diagnosis", gauge, "code,concern",
              "Diagnoses of the current drain by reason (label code). The concern is that of the reason, as in "
              "haulout_reason_info."},
    MetricRow{"haulout_drain_duration_seconds", histogram, "result",
              "Duration of drains. The result is drained, or ended for any other outcome."},
    MetricRow{"haulout_updates_total", counter, "result",
              "Updates that ended: succeeded, failed (the node became degraded) or given_up (before the agent "
              "requested the reboot)."},
    MetricRow{"haulout_evictions_total", counter, "result", "Eviction requests: accepted, refused or unanswered."},
    MetricRow{"haulout_api_requests_total", counter, "verb,resource,code",
              "Requests to the API server. The code is the HTTP status, or the kind of error if there was no answer."},
    MetricRow{"haulout_events_total", counter, "result",
              "Events of the Node: written, failed, or dropped because there were too many."},
    MetricRow{"process_cpu_seconds_total", counter, "", "Total user and system CPU time spent in seconds."},
    MetricRow{"process_resident_memory_bytes", gauge, "", "Resident memory size in bytes."},
    MetricRow{"process_virtual_memory_bytes", gauge, "", "Virtual memory size in bytes."},
    MetricRow{"process_open_fds", gauge, "", "Number of open file descriptors."},
    MetricRow{"process_max_fds", gauge, "", "Maximum number of open file descriptors."},
    MetricRow{"process_start_time_seconds", gauge, "", "Start time of the process since unix epoch in seconds."},
};

constexpr std::string_view head = R"(# Metrics

This page is made from the table of metrics in `agent/report/`; a test compares the two.

With `--metrics-address`, for example `:9797` as in the shipped DaemonSet, the agent serves these paths on that address:

| path | content |
|---|---|
| `/metrics` | the metrics below, in the text format of Prometheus |
| `/healthz` | 200 as long as the agent's event loop runs. If there is no answer, the agent may be restarted |
| `/readyz` | 200 if the API server answers and the agent has queried the operating system's update tool; otherwise 503, and the body says what is missing. A tool that cannot tell whether a reboot is needed does not cause 503: see `haulout_backend_up` |

Every `haulout_` metric also has the label `node`. Each reboot of the node restarts its agent, so counters start
again at 0 then. `rate()` and `increase()` handle that.

Example alerts are in `packaging/prometheus/haulout.rules.yaml`.
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
