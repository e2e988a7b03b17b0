#include "agent/report/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <exception>

#include "agent/report/reasons.hpp"

namespace haulout::agent {
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

// The metrics that each process has, whatever it does.
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
    for (const char* result : {"succeeded", "failed", "given_up"}) updates.Add({{"result", result}});
    for (const char* result : {"accepted", "refused", "unanswered"}) evictions.Add({{"result", result}});
    for (const char* result : {"written", "failed", "dropped"}) events.Add({{"result", result}});
    for (const char* result : {"drained", "ended"}) drains.Add({{"result", result}}, drain_buckets);
  }

  std::string text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

 private:
  // The process_ metrics have no label `node`.
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
  Changing states{gauges("haulout_state")};
  Changing since{gauges("haulout_state_since_timestamp_seconds")};
  Changing reason{gauges("haulout_reason_info")};
  Gauge& degraded{gauges("haulout_degraded").Add({})};
  Changing reboot_required{gauges("haulout_reboot_required")};
  Gauge& backend_up{gauges("haulout_backend_up").Add({})};
  Gauge& api_up{gauges("haulout_api_up").Add({})};
  Changing slot_held{gauges("haulout_slot_held")};
  Series<Gauge>& drain_pods{gauges("haulout_drain_pods")};
  Changing waiting_pods{gauges("haulout_drain_waiting_pods")};
  Changing diagnoses{gauges("haulout_diagnosis")};
  Series<Histogram>& drains{histograms("haulout_drain_duration_seconds")};
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
    impl_->since.set(std::chrono::duration<double>(status.since.time_since_epoch()).count());
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

void Metrics::show_drain(const drain::Progress& progress) {
  const std::size_t under_way = progress.vanished + progress.terminating + progress.waiting;
  const std::size_t queued = progress.to_evict - std::min(under_way, progress.to_evict);
  for (const auto& [phase, count] : {std::pair{"queued", queued}, std::pair{"waiting", progress.waiting},
                                     std::pair{"terminating", progress.terminating},
                                     std::pair{"vanished", progress.vanished}, std::pair{"skipped", progress.skipped}})
    impl_->drain_pods.Add({{"phase", phase}}).Set(static_cast<double>(count));
}

void Metrics::show_waiting_pods(const std::map<std::string, std::size_t>& by_reason) {
  impl_->waiting_pods.replace(labelled("reason", by_reason));
}

void Metrics::show_diagnoses(const std::map<std::string, std::size_t>& by_code) {
  std::map<Labels, double> values;
  for (const auto& [code, count] : by_code)
    values[{{"code", code}, {"concern", concern(code)}}] = static_cast<double>(count);
  impl_->diagnoses.replace(values);
}

void Metrics::drain_ended(bool drained, Duration took) {
  impl_->drains.Add({{"result", drained ? "drained" : "ended"}}, drain_buckets)
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
