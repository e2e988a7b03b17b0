#include "cli/drain/drain_job.hpp"

#include <algorithm>

#include "agent/process/exit_code.hpp"
#include "base/text.hpp"
#include "cli/drain/report_json.hpp"
#include "cli/program/advice.hpp"
#include "rehearse/timeline_file.hpp"

namespace haulout::cli {

DrainJob::DrainJob(Tools tools, Settings settings, drain::DrainObserver& view, LiveView* live)
    : tools_(std::move(tools)),
      settings_(std::move(settings)),
      wording_{settings_.drain.dry_run, settings_.drain.delete_instead_of_evict, tools_.program},
      jsonl_(tools_.out),
      live_(live) {
  observers_.add(view);
  if (settings_.output == OutputFormat::jsonl) observers_.add(jsonl_);
  if (!settings_.timeline.empty()) observers_.add(timeline_);
}

DrainJob::~DrainJob() = default;

// Makes the pod in which this process runs the last one of its node, and that node the last one of all. Otherwise a
// Kubernetes Job that drains its own node would end itself half-way.
static void go_last(const k8s::Self& self, drain::Options& options, std::vector<std::string>& names) {
  options.own_pod_uid = self.pod_uid;
  const auto own = std::find(names.begin(), names.end(), self.node_name);
  if (own != names.end()) std::rotate(own, own + 1, names.end());
}

boost::asio::awaitable<void> DrainJob::run() {
  if (const auto possible = rehearse::can_write_timeline(settings_.timeline); !possible) {
    tools_.console.warn("error: " + printable(possible.error().message()));
    failure_exit_code_ = agent::exit_usage;
    co_return;
  }
  auto names = co_await node_names();
  if (!names) {
    failure_exit_code_ = report_failure(tools_, names.error());
    co_return;
  }
  drain::Options options = settings_.drain;
  if (settings_.in_a_pod) {
    const auto self = co_await own_identity();
    if (!self) {
      failure_exit_code_ = report_failure(tools_, self.error());
      co_return;
    }
    if (*self) go_last(**self, options, *names);
  }
  options.drained_together = {names->begin(), names->end()};
  for (const std::string& name : *names) {
    NodeDrain& node = nodes_.emplace_back();
    node.drain = std::make_unique<drain::Drain>(tools_.client, tools_.rng, observers_, options, name);
  }
  co_await run_stage(Stage::preflight);
  co_await run_stage(Stage::cordon);
  co_await run_stage(Stage::evict);
}

// The names to drain. Several given names are looked up first, and a missing node is an error, so that nothing is
// touched. A single name needs no look-up: its drain reports that the node does not exist.
Task<std::vector<std::string>> DrainJob::node_names() {
  const Duration limit = std::max(call_limit, settings_.drain.timeout.value_or(Duration::max()));
  if (settings_.nodes.size() > 1) CO_CHECK(co_await named_nodes(tools_, settings_.nodes, limit));
  co_return co_await resolve_nodes(tools_, settings_, saturating_add(tools_.clock.now(), limit));
}

// Asks the server in which pod this process runs. If the server answers with an error status, warns and returns
// nothing. Retries for as long as the first contact of a drain.
Task<std::optional<k8s::Self>> DrainJob::own_identity() {
  const TimePoint limit = saturating_add(tools_.clock.now(), settings_.drain.unreachable_limit);
  auto self =
      co_await ask<k8s::Self>(tools_, limit, [this](TimePoint until) { return tools_.client.review_self(until); });
  if (self) co_return *std::move(self);
  if (self.error().code() != Errc::status) co_return std::move(self).error();
  tools_.console.warn(
      "Warning: it is unknown in which pod this program runs, so it may evict its own pod before others: " +
      printable(self.error().message()));
  co_return std::nullopt;
}

boost::asio::awaitable<void> DrainJob::run_stage(Stage stage) {
  for (NodeDrain& node : nodes_) {
    if (node.ended) continue;
    current_ = &node;
    bool goes_on = false;
    switch (stage) {
      case Stage::preflight: goes_on = co_await node.drain->preflight(); break;
      case Stage::cordon: goes_on = co_await node.drain->cordon(); break;
      case Stage::evict: co_await node.drain->evict(); break;
    }
    charge_requests();
    current_ = nullptr;
    after_stage(node, stage, goes_on);
  }
}

void DrainJob::after_stage(NodeDrain& node, Stage stage, bool goes_on) {
  if (!goes_on) {
    node.ended = true;
    summarise(node);
    return;
  }
  const drain::Report report = report_of(node);
  if (stage == Stage::preflight) {
    for (const std::string& line : skip_warnings(report)) tools_.console.warn(line);
    for (const std::string& line : fit_warnings(report)) tools_.console.warn(line);
  }
  if (stage == Stage::cordon)
    tools_.console.say(cordon_line(report.node, !report.cordon.before, true, settings_.drain.dry_run));
}

// Adds the requests that were sent since the last call to the counts of the current node, if there is one.
void DrainJob::charge_requests() {
  const drain::RequestCounts& now = tools_.ledger.counts();
  if (current_ != nullptr) agent::add(current_->requests, agent::difference(now, charged_));
  charged_ = now;
}

drain::Report DrainJob::report_of(const NodeDrain& node) const {
  drain::Report report = node.drain->report();
  report.requests = node.requests;
  return report;
}

void DrainJob::summarise(NodeDrain& node) {
  node.summarised = true;
  if (live_ != nullptr) live_->clear();
  const drain::Report report = report_of(node);
  const Summary text = summary(report, wording_);
  for (const std::string& line : text.out) tools_.console.say(line);
  for (const std::string& line : text.errors) tools_.console.warn(line);
  if (!report.connection_failed || !report.error) return;
  for (const std::string& line : advice(*report.error, tools_.ledger.last_denied())) tools_.console.warn(line);
}

// Writes the picture for --timeline. A failure is only a warning: it does not change the outcome of the drain.
void DrainJob::draw() {
  if (nodes_.empty()) return;
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const NodeDrain& node : nodes_) names.push_back(node.drain->report().node);
  const auto written = write_timeline(settings_.timeline, timeline_, "Drain of " + joined(names, ", "));
  if (!written) tools_.console.warn("warning: " + printable(written.error().message()));
}

int DrainJob::finish(std::optional<int> signal) {
  charge_requests();
  current_ = nullptr;
  if (live_ != nullptr) live_->clear();
  if (signal && nodes_.empty()) tools_.console.warn("interrupted; nothing was changed");
  std::vector<drain::Report> reports;
  for (NodeDrain& node : nodes_) {
    if (!node.summarised) summarise(node);
    reports.push_back(report_of(node));
  }
  if (settings_.output == OutputFormat::json && !reports.empty()) {
    const bool single = settings_.selector.empty() && reports.size() == 1;
    tools_.out.write(single ? report_json(reports.front()) : report_list_json(reports));
  }
  draw();
  if (signal) return agent::exit_code_of_signal(*signal);
  return failure_exit_code_ ? *failure_exit_code_ : agent::exit_code(reports);
}

}  // namespace haulout::cli
