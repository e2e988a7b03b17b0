#include "agent/report/metrics.hpp"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "agent/report/reasons.hpp"
#include "base/text.hpp"

namespace haulout::agent {

namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = text.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string slurp(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<ProcessFigures> parse_process_stat(std::string_view self_stat, std::string_view stat, KernelUnits units) {
  // The second field of /proc/self/stat is the program's name in parentheses. The name can contain blanks and
  // parentheses itself, so the last parenthesis ends it; see proc(5).
  const std::size_t name_end = self_stat.rfind(')');
  const std::size_t boot_line = stat.find("\nbtime ");
  if (name_end == std::string_view::npos || boot_line == std::string_view::npos) return std::nullopt;
  const auto fields = words_of(self_stat.substr(name_end + 1));
  const auto boot = words_of(stat.substr(boot_line));
  constexpr std::size_t first = 3;  // number in proc(5) of the field after the name
  if (fields.size() <= 24 - first || boot.size() < 2) return std::nullopt;
  const auto user = parse_number<double>(fields[14 - first]);
  const auto system = parse_number<double>(fields[15 - first]);
  const auto started = parse_number<double>(fields[22 - first]);
  const auto size = parse_number<double>(fields[23 - first]);
  const auto pages = parse_number<double>(fields[24 - first]);
  const auto booted = parse_number<double>(boot[1]);
  if (!user || !system || !started || !size || !pages || !booted) return std::nullopt;
  ProcessFigures figures;
  figures.cpu_seconds = (*user + *system) / units.ticks_per_second;
  figures.start_time_seconds = *booted + *started / units.ticks_per_second;
  figures.virtual_bytes = *size;
  figures.resident_bytes = *pages * units.page_bytes;
  return figures;
}

std::optional<ProcessFigures> read_process_figures() {
  const KernelUnits units{static_cast<double>(sysconf(_SC_CLK_TCK)), static_cast<double>(sysconf(_SC_PAGESIZE))};
  auto figures = parse_process_stat(slurp("/proc/self/stat"), slurp("/proc/stat"), units);
  if (!figures) return std::nullopt;
  std::error_code failure;
  std::filesystem::directory_iterator files("/proc/self/fd", failure);
  if (!failure) figures->open_fds = static_cast<double>(std::distance(files, {}));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures->max_fds = static_cast<double>(limit.rlim_cur);
  return figures;
}

namespace {

using enum MetricType;

constexpr std::array table{
    MetricRow{"haulout_build_info", gauge, "version", "Always 1; the version is a label."},
    MetricRow{"haulout_authority_info", gauge, "authority",
              "Always 1; the authority by which the agent acts is a label."},
    MetricRow{"haulout_pool_info", gauge, "pool",
              "Always 1; the pool of the node is a label, by which other metrics can be grouped. It is empty until the "
              "agent has read its Node, and if the node is in no pool."},
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
    MetricRow{"haulout_update_needed_since_timestamp_seconds", gauge, "",
              "Time since which the agent has known that the node needs a reboot or an update, as a Unix timestamp. It "
              "is kept over a reboot until the update is verified. Absent if the agent has nothing to do."},
    MetricRow{"haulout_backend_up", gauge, "",
              "1 if the last query of the back end has shown whether a reboot is needed, 0 if that is unknown."},
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
    MetricRow{"haulout_last_drain_duration_seconds", gauge, "",
              "Duration of the last drain after which the node was drained. It is kept over a reboot. Absent if there "
              "was none."},
    MetricRow{
        "haulout_last_attempt_timestamp_seconds", gauge, "reason",
        "Time at which the last attempt to update the node ended, as a Unix timestamp. The reason is Updated after "
        "a success, and otherwise why it ended. It is kept over a reboot. Absent if there was none."},
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
| `/metrics` | the metrics below, in the text format of Prometheus (0.0.4), or in OpenMetrics 1.0 if the header `Accept` of the request prefers `application/openmetrics-text` |
| `/healthz` | 200 as long as the agent's event loop runs. If there is no answer, the agent may be restarted |
| `/readyz` | 200 if the API server answers and the back end has answered; otherwise 503, and the body says what is missing. A back end that does not know whether a reboot is needed does not cause 503: see `haulout_backend_up` |

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

namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Labels = std::map<std::string, std::string>;

template <class T>
using Series = prometheus::Family<T>;

const Histogram::BucketBoundaries drain_buckets{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400};

std::string help_of(std::string_view name) {
  const auto rows = metric_table();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const MetricRow& row) { return row.name == name; });
  if (found == rows.end()) std::terminate();
  return std::string(found->help);
}

double as_number(bool value) {
  return value ? 1 : 0;
}

double unix_time(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// A metric whose label values change: replace() removes the series that are not in the new set.
class Changing {
 public:
  explicit Changing(Series<Gauge>& family) : family_(family) {}

  void replace(const std::map<Labels, double>& values) {
    for (auto each = gauges_.begin(); each != gauges_.end();) {
      const bool stays = values.contains(each->first);
      if (!stays) family_.Remove(each->second);
      each = stays ? std::next(each) : gauges_.erase(each);
    }
    for (const auto& [labels, value] : values) {
      Gauge*& gauge = gauges_[labels];
      if (!gauge) gauge = &family_.Add(labels);
      gauge->Set(value);
    }
  }
  void set(double value) { replace({{{}, value}}); }
  void clear() { replace({}); }

 private:
  Series<Gauge>& family_;
  std::map<Labels, Gauge*> gauges_;
};

std::string concern(const std::string& reason) {
  return std::string(to_string(concern_of(reason)));
}

std::map<Labels, double> labelled(const std::string& label, const std::map<std::string, std::size_t>& counts) {
  std::map<Labels, double> values;
  for (const auto& [value, count] : counts) values[{{label, value}}] = static_cast<double>(count);
  return values;
}

// The metrics of the current drain, and of all drains of this process.
struct DrainMetrics {
  Series<Gauge>& pods;
  Changing waiting_pods;
  Changing diagnoses;
  Series<Histogram>& durations;
};

// The metrics of what the record keeps over a reboot.
struct RecordMetrics {
  Changing needed_since;
  Changing last_drain;
  Changing last_attempt;
};

// The metrics that every process has.
struct ProcessMetrics {
  Counter& cpu;
  Gauge& resident;
  Gauge& virtual_memory;
  Gauge& open_fds;
  Gauge& max_fds;
  Gauge& started;
};

}  // namespace

class Metrics::Impl {
 public:
  explicit Impl(MetricsOptions options) : options_(std::move(options)) {
    gauges("haulout_build_info").Add({{"version", options_.version}}).Set(1);
    backend_up.Set(0);
    pool.replace({{{{"pool", ""}}, 1}});
    for (const char* result : {"succeeded", "failed", "given_up"}) updates.Add({{"result", result}});
    for (const char* result : {"accepted", "refused", "unanswered"}) evictions.Add({{"result", result}});
    for (const char* result : {"written", "failed", "dropped"}) events.Add({{"result", result}});
    for (const char* result : {"drained", "ended"}) drain.durations.Add({{"result", result}}, drain_buckets);
  }

  std::string text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

 private:
  // The process_ metrics describe the process, so they have no label `node`.
  Labels constant_labels(std::string_view name) const {
    return name.starts_with("haulout_") ? Labels{{"node", options_.node}} : Labels{};
  }
  Series<Gauge>& gauges(const std::string& name) {
    return prometheus::BuildGauge().Name(name).Help(help_of(name)).Labels(constant_labels(name)).Register(registry_);
  }
  Series<Counter>& counters(const std::string& name) {
    return prometheus::BuildCounter().Name(name).Help(help_of(name)).Labels(constant_labels(name)).Register(registry_);
  }
  Series<Histogram>& histograms(const std::string& name) {
    return prometheus::BuildHistogram()
        .Name(name)
        .Help(help_of(name))
        .Labels(constant_labels(name))
        .Register(registry_);
  }

  MetricsOptions options_;
  prometheus::Registry registry_;

 public:
  Changing authority{gauges("haulout_authority_info")};
  Changing pool{gauges("haulout_pool_info")};
  Changing states{gauges("haulout_state")};
  Changing since{gauges("haulout_state_since_timestamp_seconds")};
  Changing reason{gauges("haulout_reason_info")};
  Gauge& degraded{gauges("haulout_degraded").Add({})};
  Changing reboot_required{gauges("haulout_reboot_required")};
  Gauge& backend_up{gauges("haulout_backend_up").Add({})};
  Gauge& api_up{gauges("haulout_api_up").Add({})};
  Changing slot_held{gauges("haulout_slot_held")};
  DrainMetrics drain{.pods = gauges("haulout_drain_pods"),
                     .waiting_pods = Changing(gauges("haulout_drain_waiting_pods")),
                     .diagnoses = Changing(gauges("haulout_diagnosis")),
                     .durations = histograms("haulout_drain_duration_seconds")};
  RecordMetrics record{.needed_since = Changing(gauges("haulout_update_needed_since_timestamp_seconds")),
                       .last_drain = Changing(gauges("haulout_last_drain_duration_seconds")),
                       .last_attempt = Changing(gauges("haulout_last_attempt_timestamp_seconds"))};
  Series<Counter>& updates{counters("haulout_updates_total")};
  Series<Counter>& evictions{counters("haulout_evictions_total")};
  Series<Counter>& requests{counters("haulout_api_requests_total")};
  Series<Counter>& events{counters("haulout_events_total")};
  ProcessMetrics process{.cpu = counters("process_cpu_seconds_total").Add({}),
                         .resident = gauges("process_resident_memory_bytes").Add({}),
                         .virtual_memory = gauges("process_virtual_memory_bytes").Add({}),
                         .open_fds = gauges("process_open_fds").Add({}),
                         .max_fds = gauges("process_max_fds").Add({}),
                         .started = gauges("process_start_time_seconds").Add({})};
};

Metrics::Metrics(MetricsOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  show_drain({});
}
Metrics::~Metrics() = default;

void Metrics::show(const Status& status) {
  std::map<Labels, double> states;
  for (const State state : all_states)
    states[{{"state", std::string(to_string(state))}}] = as_number(state == status.state);
  impl_->states.replace(states);
  impl_->degraded.Set(as_number(status.state == State::degraded));
  if (status.since == WallTime()) {
    impl_->since.clear();
  } else {
    impl_->since.set(unix_time(status.since));
  }
  if (status.reason.empty()) {
    impl_->reason.clear();
  } else {
    impl_->reason.replace({{{{"state", std::string(to_string(status.state))},
                             {"reason", status.reason},
                             {"concern", concern(status.reason)}},
                            1}});
  }
}

void Metrics::show_need(Need need) {
  impl_->backend_up.Set(as_number(need != Need::unknown));
  if (need == Need::unknown) {
    impl_->reboot_required.clear();
  } else {
    impl_->reboot_required.set(as_number(need == Need::yes));
  }
}

void Metrics::show_slot(bool held) {
  impl_->slot_held.set(as_number(held));
}

void Metrics::show_api(bool up) {
  impl_->api_up.Set(as_number(up));
}

void Metrics::show_authority(const std::string& authority) {
  impl_->authority.replace({{{{"authority", authority}}, 1}});
}

void Metrics::show_pool(const std::string& pool) {
  impl_->pool.replace({{{{"pool", pool}}, 1}});
}

void Metrics::show_record(const Record& record) {
  RecordMetrics& shown = impl_->record;
  std::map<Labels, double> needed, drained, ended;
  if (record.needed_since) needed[{}] = unix_time(*record.needed_since);
  if (record.drain_took) drained[{}] = std::chrono::duration<double>(*record.drain_took).count();
  if (!record.attempts.empty())
    ended[{{"reason", record.attempts.back().reason}}] = unix_time(record.attempts.back().at);
  shown.needed_since.replace(needed);
  shown.last_drain.replace(drained);
  shown.last_attempt.replace(ended);
}

void Metrics::show_drain(const drain::Progress& progress) {
  const std::size_t under_way = progress.vanished + progress.terminating + progress.waiting;
  const std::size_t queued = progress.to_evict - std::min(under_way, progress.to_evict);
  for (const auto& [phase, count] : {std::pair{"queued", queued}, std::pair{"waiting", progress.waiting},
                                     std::pair{"terminating", progress.terminating},
                                     std::pair{"vanished", progress.vanished}, std::pair{"skipped", progress.skipped}})
    impl_->drain.pods.Add({{"phase", phase}}).Set(static_cast<double>(count));
}

void Metrics::show_waiting_pods(const std::map<std::string, std::size_t>& by_reason) {
  impl_->drain.waiting_pods.replace(labelled("reason", by_reason));
}

void Metrics::show_diagnoses(const std::map<std::string, std::size_t>& by_code) {
  std::map<Labels, double> values;
  for (const auto& [code, count] : by_code)
    values[{{"code", code}, {"concern", concern(code)}}] = static_cast<double>(count);
  impl_->drain.diagnoses.replace(values);
}

void Metrics::drain_ended(bool drained, Duration took) {
  impl_->drain.durations.Add({{"result", drained ? "drained" : "ended"}}, drain_buckets)
      .Observe(std::chrono::duration<double>(took).count());
}

void Metrics::update_ended(std::string_view result) {
  impl_->updates.Add({{"result", std::string(result)}}).Increment();
}

void Metrics::count_request(const std::string& verb, const std::string& resource, const std::string& code) {
  impl_->requests.Add({{"verb", verb}, {"resource", resource}, {"code", code}}).Increment();
}

void Metrics::count_eviction(std::string_view result) {
  impl_->evictions.Add({{"result", std::string(result)}}).Increment();
}

void Metrics::count_event(std::string_view result) {
  impl_->events.Add({{"result", std::string(result)}}).Increment();
}

void Metrics::show_process(const ProcessFigures& figures) {
  impl_->process.cpu.Increment(std::max(0.0, figures.cpu_seconds - impl_->process.cpu.Value()));
  impl_->process.resident.Set(figures.resident_bytes);
  impl_->process.virtual_memory.Set(figures.virtual_bytes);
  impl_->process.open_fds.Set(figures.open_fds);
  impl_->process.max_fds.Set(figures.max_fds);
  impl_->process.started.Set(figures.start_time_seconds);
}

std::string Metrics::text() const {
  return impl_->text();
}

}  // namespace haulout::agent
