#include "cli/drain/jobs.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>

#include "agent/node/node_cordon.hpp"
#include "agent/node/state.hpp"
#include "agent/process/process.hpp"
#include "base/text.hpp"
#include "cli/drain/report_json.hpp"
#include "cli/program/program.hpp"
#include "k8s/status.hpp"
#include "rehearse/charts.hpp"

namespace haulout::cli {

void LineView::on_event(const drain::Event& event) {
  const auto line = line_of(event, wording_);
  if (!line) return;
  is_line_of_kubectl(event.type) ? console_.say(*line) : console_.warn(*line);
}

void JsonlView::on_event(const drain::Event& event) {
  sink_.write(event_json(event) + '\n');
}

void Observers::on_event(const drain::Event& event) {
  for (drain::DrainObserver* observer : observers_) observer->on_event(event);
}

namespace {

// How long an interrupted drain tries to give back the pods that it has surged.
constexpr Duration clean_up_limit = std::chrono::seconds(10);

std::optional<std::string> agent_state(const k8s::Node& node) {
  const auto found = node.labels.find(std::string(agent::state_label));
  if (found == node.labels.end() || found->second == "idle") return std::nullopt;
  return found->second;
}

// Returns why `retire` must not begin, or not delete this Node now: its agent holds a slot and may reboot the machine
// at any time. Returns an empty string if that is not so.
std::string update_in_progress(const std::string& program, const k8s::Node& node) {
  const auto name = agent_state(node);
  const auto state = name ? agent::state_of(*name) : std::nullopt;
  if (!state || agent::duties_of(*state).turn != agent::Duty::yes) return {};
  return fmt::format(
      "its agent is updating it (state {}); wait until the update has ended. `{} pause {}` cancels the update, unless "
      "its installation after the drain or its reboot has begun. If the machine does not come back: kubectl delete "
      "node {}",
      *name, program, node.name, node.name);
}

// Returns a warning if the cordon of this node is its agent's: `command` then sets none of its own, and the agent ends
// its cordon, or reboots the machine, when its update goes on. Returns an empty string if that is not so.
std::string cordon_of_agent(const std::string& program, const k8s::Node& node, std::string_view command) {
  const auto state = agent_state(node);
  if (!state || !node.unschedulable || agent::persons_cordon(node)) return {};
  // A node that is cordoned without being updated, for example a degraded one, stays so until it is well.
  const auto known = agent::state_of(*state);
  const std::string remedy =
      known && agent::duties_of(*known).turn == agent::Duty::yes
          ? "and wait until its state is idle or pending"
          : fmt::format("and {} uncordon {}, so that this {} sets a cordon of its own", program, node.name, command);
  return fmt::format(
      "Warning: node/{0} is cordoned by its agent (state {1}), which may reboot or uncordon it at any time: first run "
      "{2} pause {0}, {3}",
      node.name, *state, program, remedy);
}

}  // namespace

CordonJob::CordonJob(Tools tools, Settings settings) : tools_(std::move(tools)), settings_(std::move(settings)) {}

boost::asio::awaitable<void> CordonJob::run() {
  auto nodes = co_await look_up();
  if (!nodes) {
    exit_code_ = report_failure(tools_, nodes.error());
    co_return;
  }
  if (nodes->empty()) tools_.console.warn(no_match(settings_.selector));
  left_ = *std::move(nodes);
  const bool on = settings_.command == Command::cordon;
  while (!left_.empty()) {
    const k8s::Node node = left_.front();
    changing_ = settings_.drain.dry_run == drain::DryRunMode::none;
    auto result = co_await change(node);
    changing_ = false;
    left_.erase(left_.begin());
    if (!result) {
      exit_code_ =
          std::max(exit_code_, report_failure(tools_, std::move(result).error().with_context("node/" + node.name)));
      continue;
    }
    if (const auto state = agent_state(result->before); !on && state)
      tools_.console.warn(
          fmt::format("Warning: node/{} is in state {}, so its agent may cordon it again", node.name, *state));
    const std::string warning = on ? cordon_of_agent(tools_.program, result->before, "command") : std::string();
    if (!warning.empty()) tools_.console.warn(warning);
    // If the response to a first request was lost, the retry finds nothing to change. But the Node that was read at the
    // start shows that this command has changed the cordon.
    const bool changed = result->changed || node.unschedulable != on;
    tools_.console.say(cordon_line(node.name, changed, on, settings_.drain.dry_run));
  }
}

int CordonJob::finish(std::optional<int> signal) {
  if (!signal) return exit_code_;
  // The signal may have arrived after the server applied the request and before its response. So it is unknown whether
  // the node was changed.
  if (changing_) {
    tools_.console.warn(
        fmt::format("interrupted; it is unknown whether node/{0} is cordoned now ('kubectl get node {0}' shows it)",
                    left_.front().name));
    left_.erase(left_.begin());
  }
  std::vector<std::string> names;
  names.reserve(left_.size());
  for (const k8s::Node& node : left_) names.push_back(node.name);
  if (!names.empty()) tools_.console.warn("interrupted; these nodes were not changed: " + joined(names, ", "));
  return agent::exit_code_of_signal(*signal);
}

Task<std::vector<k8s::Node>> CordonJob::look_up() {
  if (settings_.selector.empty()) co_return co_await named_nodes(tools_, settings_.nodes, call_limit);
  co_return co_await select_nodes(tools_, settings_.selector, saturating_add(tools_.clock.now(), call_limit));
}

Task<drain::CordonChange> CordonJob::change(k8s::Node node) {
  const bool on = settings_.command == Command::cordon;
  drain::CordonMark mark{settings_.drain.run_id, settings_.drain.cordoned_by, tools_.clock.wall_now()};
  if (settings_.drain.dry_run == drain::DryRunMode::client) {
    const auto patch = on ? drain::cordon_patch(node, mark) : drain::uncordon_patch(node, true);
    co_return drain::CordonChange{node, node, patch.has_value()};
  }
  const k8s::DryRun dry_run =
      settings_.drain.dry_run == drain::DryRunMode::server ? k8s::DryRun::server : k8s::DryRun::none;
  const auto attempt = [&, this](TimePoint until) {
    return on ? drain::cordon(tools_.client, tools_.rng, node.name, {}, mark, dry_run, until)
              : drain::uncordon(tools_.client, tools_.rng, node.name, true, dry_run, until);
  };
  co_return co_await ask<drain::CordonChange>(tools_, saturating_add(tools_.clock.now(), call_limit), attempt);
}

DrainJob::DrainJob(Tools tools, Settings settings, drain::DrainObserver& view, LiveView* live,
                   std::unique_ptr<LocalMachine> machine)
    : tools_(std::move(tools)),
      settings_(std::move(settings)),
      wording_{settings_.drain.dry_run, settings_.drain.delete_instead_of_evict, tools_.program},
      jsonl_(tools_.out),
      live_(live) {
  if (machine) local_ = std::make_unique<LocalRetirement>(tools_, settings_, std::move(machine));
  observers_.add(view);
  if (settings_.output == OutputFormat::jsonl) observers_.add(jsonl_);
  if (!settings_.timeline.empty()) observers_.add(timeline_);
}

DrainJob::~DrainJob() = default;

// Makes the pod in which this process runs the last pod of its node to be evicted, and that node the last one to be
// drained. Otherwise a Kubernetes Job that drains its own node would end itself before it is done. Returns true if its
// node is one of these.
static bool go_last(const k8s::Self& self, drain::Options& options, std::vector<std::string>& names) {
  options.own_pod_uid = self.pod_uid;
  const auto own = std::find(names.begin(), names.end(), self.node_name);
  if (own == names.end()) return false;
  std::rotate(own, own + 1, names.end());
  return true;
}

boost::asio::awaitable<void> DrainJob::run() {
  if (const auto possible = rehearse::can_write_timeline(settings_.timeline); !possible) {
    tools_.console.warn("error: " + printable(possible.error().message()));
    failure_exit_code_ = agent::exit_usage;
    co_return;
  }
  if (local_ && !find_local_node()) co_return;
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
    if (*self) own_node_is_last_ = go_last(**self, options, *names);
    if (settings_.command == Command::retire && *self &&
        std::find(names->begin(), names->end(), (*self)->node_name) != names->end()) {
      refuse("node/" + (*self)->node_name, "this program runs in a pod of the node; run it on another machine");
      co_return;
    }
  }
  if (settings_.command == Command::retire && !co_await may_retire(*names)) co_return;
  options.drained_together = {names->begin(), names->end()};
  for (const std::string& name : *names) {
    NodeDrain& node = nodes_.emplace_back(tools_.client);
    node.drain = std::make_unique<drain::Drain>(node.client, tools_.rng, observers_, options, name);
  }
  co_await preflight();
  co_await cordon();
  co_await evict_all();
}

// Returns the names of the nodes to drain. If several names are given, looks them all up first, and fails before
// anything is changed if one does not exist. A single name is not looked up, because its drain reports a missing node.
Task<std::vector<std::string>> DrainJob::node_names() {
  const Duration limit = std::max(call_limit, settings_.drain.timeout.value_or(Duration::max()));
  if (settings_.nodes.size() > 1) CO_CHECK(co_await named_nodes(tools_, settings_.nodes, limit));
  co_return co_await resolve_nodes(tools_, settings_, saturating_add(tools_.clock.now(), limit));
}

// Prints that `retire` changes nothing, because of this node.
void DrainJob::refuse(const std::string& what, std::string_view why) {
  tools_.console.warn(fmt::format("error: {} cannot be retired, so nothing was changed: {}", what, printable(why)));
  failure_exit_code_ = agent::exit_not_done;
}

// For --local: makes this machine's node the one to retire. Returns false, and prints why, if that is impossible.
bool DrainJob::find_local_node() {
  auto name = local_->node_name();
  if (!name) {
    refuse(settings_.nodes.empty() ? "this machine" : "node/" + settings_.nodes.front(), name.error().message());
    return false;
  }
  settings_.nodes = {*std::move(name)};
  return true;
}

// Returns false, and prints why, if a node cannot be read, or if the agent of a node is updating it.
boost::asio::awaitable<bool> DrainJob::may_retire(std::vector<std::string> names) {
  auto nodes = co_await named_nodes(tools_, std::move(names), call_limit);
  if (!nodes) {
    failure_exit_code_ = report_failure(tools_, nodes.error());
    if (local_ && k8s::is_gone(nodes.error()))
      tools_.console.warn(fmt::format(
          "if this machine's node has another name, name it. If you are sure that its Node is deleted from the cluster "
          "of {}, {}",
          settings_.retire.server, by_hand));
    co_return false;
  }
  for (const k8s::Node& node : *nodes)
    if (const std::string why = update_in_progress(tools_.program, node); !why.empty())
      refuse("node/" + node.name, why);
  if (local_ && !failure_exit_code_) {
    const k8s::Node& node = nodes->front();
    const auto why = co_await local_->prepare(node);
    if (!why)
      failure_exit_code_ = report_failure(tools_, why.error());
    else if (!why->empty())
      refuse("node/" + node.name, *why);
  }
  co_return !failure_exit_code_;
}

// Deletes the Node of a node that was drained. Prints the summary of the drain first: the rest may take minutes.
boost::asio::awaitable<void> DrainJob::retire(NodeDrain& node) {
  summarise(node);
  drain::RetirementOptions options;
  options.dry_run = settings_.drain.dry_run;
  options.unreachable_limit = settings_.drain.unreachable_limit;
  options.objection = [program = tools_.program](const k8s::Node& seen) { return update_in_progress(program, seen); };
  const std::string name = node.drain->report().node;
  options.deleted = [this, name] {
    tools_.console.say(deletion_line(name, drain::DryRunMode::none));
    tools_.console.warn(
        fmt::format("node/{}: waiting until its pods, VolumeAttachments, CSINode and Lease are deleted, too", name));
  };
  options.failed = [waiting = std::make_shared<Waiting>(tools_)](const Error& error) { waiting->tell(error); };
  if (local_) options.clean_up = [this, uid = node.drain->report().node_uid] { return local_->clean_up(uid); };
  node.retirement =
      std::make_unique<drain::Retirement>(node.client, tools_.rng, std::move(options), node.drain->report());
  co_await node.retirement->run();
}

// Requests from the API server the identity of this process: its pod and its node. If the server responds with an error
// status, prints a warning and returns nullopt. Fails with any other error. Retries for as long as the first request of
// a drain.
Task<std::optional<k8s::Self>> DrainJob::own_identity() {
  const TimePoint limit = saturating_add(tools_.clock.now(), settings_.drain.unreachable_limit);
  auto self =
      co_await ask<k8s::Self>(tools_, limit, [this](TimePoint until) { return tools_.client.review_self(until); });
  if (self) co_return *std::move(self);
  if (self.error().code() != Errc::status) co_return std::move(self).error();
  tools_.console.warn(
      "Warning: it is unknown in which pod this program runs, so the drain may evict that pod before others: " +
      printable(self.error().message()));
  co_return std::nullopt;
}

boost::asio::awaitable<void> DrainJob::preflight() {
  for (NodeDrain& node : nodes_) {
    if (!co_await node.drain->preflight()) {
      end(node);
      continue;
    }
    if (settings_.command == Command::drain)
      if (const auto line = cordon_of_agent(tools_.program, node.drain->node(), "drain"); !line.empty())
        tools_.console.warn(line);
    const drain::Report report = report_of(node);
    for (const std::string& line : skip_warnings(report)) tools_.console.warn(line);
    for (const std::string& line : fit_warnings(report)) tools_.console.warn(line);
  }
}

boost::asio::awaitable<void> DrainJob::cordon() {
  for (NodeDrain& node : nodes_) {
    if (node.ended) continue;
    if (!co_await node.drain->cordon()) {
      end(node);
      continue;
    }
    const drain::Report report = report_of(node);
    tools_.console.say(cordon_line(report.node, !report.cordon.before, true, settings_.drain.dry_run));
  }
}

boost::asio::awaitable<void> DrainJob::evict_all() {
  const std::size_t others = nodes_.size() - (own_node_is_last_ ? 1 : 0);
  co_await with_task_group([this, others](TaskGroup& group) {
    for (std::int64_t i = 0; i < settings_.parallel; ++i) group.spawn(evict_nodes(others));
    return group.join();
  });
  co_await evict_nodes(nodes_.size());
}

// Evicts the pods of one node after another. Goes on until nobody has left any of the first `end` nodes.
boost::asio::awaitable<void> DrainJob::evict_nodes(std::size_t end) {
  while (next_ < end) {
    NodeDrain& node = nodes_[next_++];
    if (!node.ended) co_await evict(node);
  }
}

boost::asio::awaitable<void> DrainJob::evict(NodeDrain& node) {
  if (co_await node.drain->evict() && settings_.command == Command::retire) co_await retire(node);
  end(node);
}

void DrainJob::end(NodeDrain& node) {
  node.ended = true;
  summarise(node);
}

drain::Report DrainJob::report_of(const NodeDrain& node) const {
  drain::Report report = node.drain->report();
  report.requests = node.transport.counts();
  if (node.retirement) report.retirement = node.retirement->report();
  return report;
}

// Prints what has ended since the last call: the drain of the node, and the deletion of its Node.
void DrainJob::summarise(NodeDrain& node) {
  const drain::Report report = report_of(node);
  if (live_ != nullptr) live_->clear(report.node);
  if (!node.summarised) {
    node.summarised = true;
    print(summary(report, wording_));
    if (report.connection_failed && report.error) advise(*report.error);
  }
  if (!report.retirement || node.retirement_summarised) return;
  node.retirement_summarised = true;
  print(retirement_summary(report.node, *report.retirement, settings_.drain.dry_run));
  if (local_ && local_->begun())
    tools_.console.warn(fmt::format("node/{}: clean-up: {}", report.node, clean_up_line(local_->programs())));
  if (report.retirement->connection_failed && report.retirement->error) advise(*report.retirement->error);
}

void DrainJob::print(const Summary& text) {
  for (const std::string& line : text.out) tools_.console.say(line);
  for (const std::string& line : text.errors) tools_.console.warn(line);
}

void DrainJob::advise(const Error& error) {
  for (const std::string& line : advice(error, tools_.denied)) tools_.console.warn(line);
}

// Writes the chart for --timeline. If that fails, prints a warning; the outcome of the drain stays the same.
void DrainJob::draw() {
  if (nodes_.empty()) return;
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const NodeDrain& node : nodes_) names.push_back(node.drain->report().node);
  const auto written = write_timeline(settings_.timeline, timeline_, "Drain of " + joined(names, ", "));
  if (!written) tools_.console.warn("warning: " + printable(written.error().message()));
}

boost::asio::awaitable<void> DrainJob::clean_up() {
  // All at the same time, because each may take its limit.
  co_await with_task_group([this](TaskGroup& group) {
    for (NodeDrain& node : nodes_)
      if (!node.ended) group.spawn(clean_up(node));
    return group.join();
  });
}

boost::asio::awaitable<void> DrainJob::clean_up(NodeDrain& node) {
  const drain::Report report = node.drain->report();
  if (node.drain->may_have_surged()) {
    const auto given = co_await drain::give_back_surged(node.client, tools_.rng, report.node, node.drain->surged(),
                                                        saturating_add(tools_.clock.now(), clean_up_limit));
    for (const std::string& line : given_back_lines(report.node, given, tools_.program)) tools_.console.warn(line);
  }
  if (node.drain->may_have_requested()) {
    const auto withdrawn =
        co_await drain::withdraw_requests(node.client, tools_.rng, report.node_uid, node.drain->asked(),
                                          saturating_add(tools_.clock.now(), clean_up_limit));
    for (const std::string& line : withdrawn_lines(report.node, withdrawn, tools_.program)) tools_.console.warn(line);
  }
}

int DrainJob::finish(std::optional<int> signal) {
  if (signal && nodes_.empty()) tools_.console.warn("interrupted; nothing was changed");
  std::vector<drain::Report> reports;
  for (NodeDrain& node : nodes_) {
    summarise(node);
    reports.push_back(report_of(node));
  }
  if (settings_.output == OutputFormat::json && !reports.empty()) {
    const bool single = settings_.selector.empty() && reports.size() == 1;
    tools_.out.write(!single  ? report_list_json(reports)
                     : local_ ? report_json(reports.front(), local_->programs())
                              : report_json(reports.front()));
  }
  draw();
  if (signal) return agent::exit_code_of_signal(*signal);
  return failure_exit_code_ ? *failure_exit_code_ : agent::exit_code(reports);
}

namespace {

struct View {
  std::unique_ptr<LineView> lines;
  std::unique_ptr<LiveView> live;
  drain::DrainObserver& observer() {
    if (live) return *live;
    return *lines;
  }
};

View make_view(agent::Process& process, Console& console, const Settings& settings) {
  const int fd = settings.output == OutputFormat::text ? STDOUT_FILENO : STDERR_FILENO;
  View view;
  if (can_redraw(fd, process.environment)) {
    auto measure = [fd, environment = process.environment] { return measure_terminal(fd, environment); };
    view.live = std::make_unique<LiveView>(process.executor, process.clock, console, std::move(measure),
                                           static_cast<std::size_t>(settings.parallel));
  } else {
    const drain::Options& options = settings.drain;
    view.lines =
        std::make_unique<LineView>(console, Wording{options.dry_run, options.delete_instead_of_evict, process.program});
  }
  return view;
}

// The job of `haulout drain`; it owns the view that shows the progress.
class ViewedDrainJob final : public Job {
 public:
  ViewedDrainJob(agent::Process& process, Tools tools, const Settings& settings)
      : view_(make_view(process, tools.console, settings)),
        job_(std::move(tools), settings, view_.observer(), view_.live.get(),
             settings.retire.local ? this_machine(process.clock) : nullptr) {}

  boost::asio::awaitable<void> run() override { return job_.run(); }
  std::vector<boost::asio::awaitable<void>> helpers() override {
    std::vector<boost::asio::awaitable<void>> all;
    if (view_.live) all.push_back(view_.live->run());
    return all;
  }
  boost::asio::awaitable<void> clean_up() override { return job_.clean_up(); }
  int finish(std::optional<int> signal) override { return job_.finish(signal); }

 private:
  View view_;
  DrainJob job_;
};

}  // namespace

std::unique_ptr<Job> make_drain_job(agent::Process& process, Tools tools, const Settings& settings) {
  if (settings.command == Command::drain || settings.command == Command::retire)
    return std::make_unique<ViewedDrainJob>(process, std::move(tools), settings);
  return std::make_unique<CordonJob>(std::move(tools), settings);
}

}  // namespace haulout::cli
