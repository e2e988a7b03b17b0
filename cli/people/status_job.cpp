#include "cli/people/status_job.hpp"

#include <fmt/format.h>

#include "agent/process/exit_code.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/change.hpp"
#include "cli/people/facts.hpp"
#include "cli/people/status_json.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {
namespace asio = boost::asio;

namespace {

// `shortest_gap` is the least time between two updates: faster ones would only flicker. A redrawn table is updated
// every `tick`, so that ages advance. Printed rows are checked every `slow_tick` for what time alone changes: a pause
// that has ended, or an agent that has missed its deadline.
constexpr Duration shortest_gap = std::chrono::milliseconds(100);
constexpr Duration tick = std::chrono::seconds(1);
constexpr Duration slow_tick = std::chrono::minutes(1);

}  // namespace

StatusJob::StatusJob(Tools tools, Settings settings, std::function<Terminal()> measure)
    : tools_(std::move(tools)), settings_(std::move(settings)), measure_(std::move(measure)) {}

asio::awaitable<void> StatusJob::run() {
  if (settings_.people.watch)
    co_await watch();
  else
    co_await once();
}

int StatusJob::finish(std::optional<int> signal) {
  return signal ? agent::exit_code_of_signal(*signal) : exit_code_;
}

TableStyle StatusJob::style() const {
  return {settings_.output == OutputFormat::wide, measure_ && measure_().color};
}

asio::awaitable<std::optional<std::vector<k8s::Node>>> StatusJob::read_nodes() {
  const TimePoint deadline = saturating_add(tools_.clock.now(), call_limit);
  if (settings_.nodes.empty()) {
    auto list = co_await tools_.client.list_nodes(settings_.selector, deadline);
    if (list) co_return std::move(list->items);
    failed(list.error());
    co_return std::nullopt;
  }
  std::vector<k8s::Node> nodes;
  for (const std::string& name : settings_.nodes) {
    auto node = co_await tools_.client.get_node(name, deadline);
    if (node)
      nodes.push_back(*std::move(node));
    else
      failed(about_node(std::move(node).error(), name));
  }
  if (nodes.empty()) co_return std::nullopt;
  co_return nodes;
}

asio::awaitable<void> StatusJob::once() {
  const auto nodes = co_await read_nodes();
  if (!nodes) co_return;
  const TimePoint deadline = saturating_add(tools_.clock.now(), call_limit);
  FleetFacts facts = co_await read_facts(tools_.client, settings_.haulout_namespace(), deadline);
  const WallTime now = tools_.client.server_now();
  const Fleet fleet = fleet_of(*nodes, std::move(facts), whole(), now);
  if (settings_.output == OutputFormat::json) {
    tools_.out.write(node_status_list_json(fleet, now));
  } else if (fleet.nodes.empty()) {
    tools_.console.warn(whole() ? "this cluster has no nodes"
                                : fmt::format("no node matches the selector \"{}\"", settings_.selector));
  } else {
    for (const std::string& line : status_text(fleet, style(), now)) tools_.console.say(line);
  }
}

asio::awaitable<void> StatusJob::watch() {
  // If the first list fails, the command ends, as it does without -w. Later failures do not end the watch.
  auto first = co_await tools_.client.list_nodes(settings_.selector, saturating_add(tools_.clock.now(), call_limit));
  if (!first) {
    failed(first.error());
    co_return;
  }
  changed_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  const auto notify = [this] { changed_->notify(); };
  k8s::ReflectorOptions of_nodes;
  of_nodes.label_selector = settings_.selector;
  nodes_ = std::make_unique<k8s::Reflector<k8s::Node>>(
      tools_.client, tools_.rng, of_nodes, [](const std::string&, const k8s::Node*) {}, notify);
  nodes_->seed(*std::move(first));
  k8s::ReflectorOptions of_turns;
  of_turns.ns = settings_.haulout_namespace();
  of_turns.label_selector = agent::pool_label;
  turns_ = std::make_unique<k8s::Reflector<k8s::Lease>>(
      tools_.client, tools_.rng, of_turns, [](const std::string&, const k8s::Lease*) {}, notify);
  k8s::ReflectorOptions of_maps;
  of_maps.ns = settings_.haulout_namespace();
  of_maps.field_selector = fmt::format("metadata.name={}", config_map_name);
  maps_ = std::make_unique<k8s::Reflector<k8s::ConfigMap>>(
      tools_.client, tools_.rng, of_maps, [](const std::string&, const k8s::ConfigMap*) {}, notify);
  co_await with_task_group([this](TaskGroup& group) { return watch_in(group); });
  if (nodes_refused_) failed(*nodes_refused_);
}

asio::awaitable<void> StatusJob::watch_in(TaskGroup& group) {
  group.spawn(follow(*nodes_, nodes_refused_));
  group.spawn(follow(*turns_, turns_refused_));
  group.spawn(follow(*maps_, maps_refused_));
  group.spawn(look_for_reader());
  const bool redraws = measure_ && settings_.output != OutputFormat::json;
  while (!nodes_refused_ && !unread_) {
    const TimePoint began = tools_.clock.now();
    show_trouble();
    if (complete()) {
      name_missing();
      const Fleet fleet = view();
      redraws ? draw(fleet) : show_change(fleet);
    }
    const TimePoint now = tools_.clock.now();
    co_await changed_->wait_until(tools_.clock, now + (redraws ? tick : slow_tick));
    // In a large fleet some Node changes all the time. The pause of nine times the work limits the work to a tenth of
    // the time.
    co_await tools_.clock.sleep_until(tools_.clock.now() + std::max(shortest_gap, 9 * (now - began)));
  }
}

// Ends the watch when the reader has closed the output, even if nothing is written: `status -w | grep -m1 degraded`.
asio::awaitable<void> StatusJob::look_for_reader() {
  while (tools_.out.has_reader()) co_await tools_.clock.sleep_until(tools_.clock.now() + tick);
  unread_ = true;
  changed_->notify();
}

template <class T>
asio::awaitable<void> StatusJob::follow(k8s::Reflector<T>& view, std::optional<Error>& refused) {
  auto ended = co_await view.run();
  if (!ended) refused = std::move(ended).error();
  changed_->notify();
}

bool StatusJob::complete() const {
  return nodes_->health().synced && (turns_->health().synced || turns_refused_) &&
         (maps_->health().synced || maps_refused_);
}

bool StatusJob::wanted(const k8s::Node& node) const {
  const auto& names = settings_.nodes;
  return names.empty() || std::find(names.begin(), names.end(), node.name) != names.end();
}

Fleet StatusJob::view() const {
  FleetFacts facts;
  for (const auto& [uid, turn] : turns_->objects()) facts.turns.push_back(turn);
  for (const auto& [uid, map] : maps_->objects()) facts.entries = map.data;
  if (turns_refused_) facts.turns_problem = printable(turns_refused_->message());
  if (maps_refused_) facts.entries_problem = printable(maps_refused_->message());
  std::vector<k8s::Node> nodes;
  for (const auto& [uid, node] : nodes_->objects())
    if (wanted(node)) nodes.push_back(node);
  return fleet_of(nodes, std::move(facts), whole(), tools_.client.server_now());
}

void StatusJob::name_missing() {
  if (begun_) return;
  begun_ = true;
  for (const std::string& name : settings_.nodes) {
    const bool there = std::any_of(nodes_->objects().begin(), nodes_->objects().end(),
                                   [&](const auto& entry) { return entry.second.name == name; });
    if (there) continue;
    exit_code_ = std::max(exit_code_, agent::exit_not_done);
    tools_.console.warn(fmt::format("node/{} does not exist; it is shown when it is created", printable(name)));
  }
}

std::string StatusJob::trouble() const {
  const k8s::ReflectorHealth& health = nodes_->health();
  return health.connected || !health.error ? "" : printable(health.error->message());
}

void StatusJob::show_trouble() {
  std::string now = trouble();
  if (now == trouble_told_) return;
  if (!measure_ || !begun_) tools_.console.warn(now.empty() ? "connected again" : "not connected: " + now);
  trouble_told_ = std::move(now);
}

void StatusJob::draw(const Fleet& fleet) {
  tools_.console.set_block(status_block(fleet, trouble(), style(), measure_(), tools_.client.server_now()));
}

void StatusJob::show_change(const Fleet& fleet) {
  const WallTime now = tools_.client.server_now();
  const bool json = settings_.output == OutputFormat::json;
  const bool first = !table_;
  if (first) {
    table_.emplace(style());
    table_->fit_changes();
    table_->fit(fleet.nodes, now);
    if (!json) tools_.console.say(table_->header());
  }
  std::map<std::string, NodeView> seen;
  for (const NodeView& node : fleet.nodes) {
    seen.emplace(node.name, node);
    const auto known = told_.find(node.name);
    if (known != told_.end() && known->second == node) continue;
    // This table may not show what has changed.
    if (!json && known != told_.end() && table_->row(known->second, now) == table_->row(node, now)) continue;
    if (json)
      tools_.out.write(
          watched_node_json(known == told_.end() ? WatchedChange::added : WatchedChange::modified, node, now));
    else
      tools_.console.say(table_->row(node, now));
  }
  for (const auto& [name, node] : told_) {
    if (seen.contains(name)) continue;
    if (json)
      tools_.out.write(watched_node_json(WatchedChange::deleted, node, now));
    else
      tools_.console.say(table_->gone(name));
  }
  told_ = std::move(seen);
  std::vector<std::string> pauses = pause_lines(fleet.facts, now);
  if (!json && (pauses != pauses_told_)) {
    for (const std::string& line : pauses) tools_.console.say(line);
    if (pauses.empty()) tools_.console.say("neither the cluster nor a pool is paused");
  }
  pauses_told_ = std::move(pauses);
}

}  // namespace haulout::cli
