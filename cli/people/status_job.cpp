#include "cli/people/status_job.hpp"

#include <fmt/format.h>

#include "agent/gates/pause.hpp"
#include "agent/process/process.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/views.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {

namespace {

constexpr std::string_view gap = "   ";
// On narrower terminals, columns are only as wide as their present content, to leave space for the messages.
constexpr std::size_t roomy = 99;

std::string or_none(const std::string& text) {
  return text.empty() ? "<none>" : printable(text);
}

std::string reboot_text(const NodeView& node) {
  if (node.requested_at) return "at " + k8s::format_time(*node.requested_at);
  if (node.requested) return "requested";
  if (!node.request_problem.empty()) return "unreadable";
  return or_none(node.reboot_required);
}

std::string versions_text(const NodeView& node) {
  if (node.to.empty()) return or_none(node.from);
  return printable(node.from.empty() ? node.to : node.from + "->" + node.to);
}

std::string ago(const std::optional<WallTime>& time, WallTime now) {
  return time ? age_text(*time, now) : "<none>";
}

const char* color_of(const NodeView& node) {
  if (node.state == to_string(agent::State::degraded) || node.overdue) return "31";
  if (!node.agent) return "2";
  if (is_under_way(node.state)) return "36";
  if (node.state == to_string(agent::State::idle) && node.reboot_required == "false") return "32";
  return "33";
}

bool calm(const NodeView& node) {
  return node.ready && !node.overdue && !node.requested && node.request_problem.empty() &&
         node.state == to_string(agent::State::idle) && node.reboot_required == "false";
}

std::string last_attempt(const NodeView& node, WallTime now) {
  if (!node.last_attempt) return "<none>";
  return fmt::format("{} ({})", or_none(node.last_attempt->reason), age_text(node.last_attempt->at, now));
}

}  // namespace

StatusTable::Cells StatusTable::titles() const {
  Cells cells{"NAME", "STATE", "REASON", "REBOOT", "SINCE"};
  if (style_.wide) cells.insert(cells.end(), {"POOL", "SLOT", "VERSIONS", "OS-IMAGE", "LAST-UPDATE", "LAST-ATTEMPT"});
  cells.emplace_back("MESSAGE");
  return cells;
}

StatusTable::Cells StatusTable::cells(const NodeView& node, WallTime now) const {
  Cells cells{node.name, printable(state_text(node)), or_none(node.reason), reboot_text(node), ago(node.since, now)};
  if (style_.wide)
    cells.insert(cells.end(), {or_none(node.pool), or_none(node.turn), versions_text(node), or_none(node.os_image),
                               ago(node.last_update, now), last_attempt(node, now)});
  cells.push_back(message_text(node, now));
  return cells;
}

std::string StatusTable::line(const Cells& cells) const {
  std::string result;
  for (std::size_t i = 0; i < cells.size(); ++i)
    result += i + 1 == cells.size() ? cells[i] : padded(cells[i], i < widths_.size() ? widths_[i] : 0).append(gap);
  return result.substr(0, result.find_last_not_of(' ') + 1);
}

void StatusTable::fit(const std::vector<NodeView>& nodes, WallTime now) {
  const auto grow = [this](const Cells& row) {
    widths_.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], columns(row[i]));
  };
  grow(titles());
  for (const NodeView& node : nodes) grow(cells(node, now));
}

void StatusTable::fit_changes() {
  widths_.resize(titles().size());
  widths_[1] = std::max(widths_[1], std::string_view("rebooting,NotReady").size());
  widths_[2] = std::max(widths_[2], std::string_view(reason::blocked_by_budget).size());
}

std::string StatusTable::header() const {
  return line(titles());
}

std::string StatusTable::row(const NodeView& node, WallTime now, std::size_t width, bool utf8) const {
  const Cells all = cells(node, now);
  std::string text = clipped(line(all), width, utf8);
  // Position of the column STATE in bytes. NAME and STATE are ASCII, so one byte is one column.
  const std::size_t begin = std::max(widths_.empty() ? 0 : widths_[0], all[0].size()) + gap.size();
  const std::size_t end = begin + all[1].size();
  if (!style_.color || end > text.size() || end >= width) return text;
  return fmt::format("{}\x1b[{}m{}\x1b[0m{}", text.substr(0, begin), color_of(node), text.substr(begin, end - begin),
                     text.substr(end));
}

std::string StatusTable::gone(const std::string& name) const {
  return line({name, "<deleted>"});
}

std::vector<std::string> status_text(const Fleet& fleet, TableStyle style, WallTime now) {
  StatusTable table(style);
  table.fit(fleet.nodes, now);
  std::vector<std::string> lines{table.header()};
  for (const NodeView& node : fleet.nodes) lines.push_back(table.row(node, now));
  lines.emplace_back();
  lines.push_back(count_line(fleet.nodes));
  for (std::string& line : hold_lines(fleet, now)) lines.push_back(std::move(line));
  return lines;
}

namespace {

// Wraps the notes to `width` if the result has at most `most` lines. Otherwise returns one line per note, at most
// `most`.
std::vector<std::string> fitting(std::vector<std::string> notes, std::size_t width, std::size_t most) {
  std::vector<std::string> in_full;
  for (const std::string& note : notes)
    for (std::string& line : wrapped(note, width)) in_full.push_back(std::move(line));
  std::vector<std::string>& chosen = in_full.size() <= most ? in_full : notes;
  chosen.resize(std::min(chosen.size(), most));
  return std::move(chosen);
}

}  // namespace

std::vector<std::string> status_block(const Fleet& fleet, const std::string& trouble, TableStyle style,
                                      const Terminal& terminal, WallTime now) {
  // The minimum height: a header, a row, a blank line, two notes and the line with the cursor.
  if (terminal.width < 2 || terminal.height < 6) return {};
  std::vector<std::string> notes{count_line(fleet.nodes)};
  if (!trouble.empty())
    notes.push_back("the Nodes cannot be watched now, so this view may be old: " + printable(trouble));
  for (std::string& line : hold_lines(fleet, now)) notes.push_back(std::move(line));
  const std::size_t width = terminal.width - 1;  // some terminals wrap a line that fills the last column
  const std::size_t room = terminal.height - 1;  // without the line with the cursor
  notes = fitting(std::move(notes), width, std::max<std::size_t>(2, room / 3));
  // The block is a header, the rows, a line that counts the omitted nodes (if any), a blank line, and the notes.
  const std::size_t for_rows = room - std::min(room, notes.size() + 2);

  std::vector<NodeView> shown = fleet.nodes;
  std::size_t left_out = 0;
  if (shown.size() > for_rows) {
    std::sort(shown.begin(), shown.end(), [](const NodeView& a, const NodeView& b) {
      return std::pair(calm(a), std::string_view(a.name)) < std::pair(calm(b), std::string_view(b.name));
    });
    const std::size_t kept = for_rows == 0 ? 0 : for_rows - 1;
    left_out = shown.size() - kept;
    shown.resize(kept);
  }
  StatusTable table(style);
  table.fit(shown, now);
  if (width >= roomy) table.fit_changes();
  std::vector<std::string> lines{clipped(table.header(), width, terminal.utf8)};
  for (const NodeView& node : shown) lines.push_back(table.row(node, now, width, terminal.utf8));
  if (left_out != 0) lines.push_back(fmt::format("and {} more", left_out));
  lines.emplace_back();
  for (const std::string& note : notes) lines.push_back(clipped(note, width, terminal.utf8));
  return lines;
}

namespace asio = boost::asio;

namespace {

// `shortest_gap` is the minimum time between two outputs; more frequent ones would flicker. The table on a terminal is
// redrawn every `tick`, so that ages advance. Elsewhere, the rows are checked every `slow_tick` for changes that only
// time causes: a pause that has ended, or an agent that has missed its deadline.
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
    tools_.console.warn(whole() ? "this cluster has no nodes" : no_match(settings_.selector));
  } else {
    for (const std::string& line : status_text(fleet, style(), now)) tools_.console.say(line);
  }
}

asio::awaitable<void> StatusJob::watch() {
  // Without a first list the command fails, as it does without -w. A later failure does not end the watch.
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
  of_maps.field_selector = fmt::format("metadata.name={}", agent::pause_config_map);
  maps_ = std::make_unique<k8s::Reflector<k8s::ConfigMap>>(
      tools_.client, tools_.rng, of_maps, [](const std::string&, const k8s::ConfigMap*) {}, notify);
  co_await with_task_group([this](TaskGroup& group) { return watch_in(group); });
}

asio::awaitable<void> StatusJob::watch_in(TaskGroup& group) {
  group.spawn(follow_nodes());
  group.spawn(follow(*turns_, turns_refused_));
  group.spawn(follow(*maps_, maps_refused_));
  group.spawn(look_for_reader());
  const bool redraws = measure_ && settings_.output != OutputFormat::json;
  while (!unread_) {
    const TimePoint began = tools_.clock.now();
    show_trouble();
    if (complete()) {
      name_missing();
      const Fleet fleet = view();
      redraws ? draw(fleet) : show_change(fleet);
    }
    const TimePoint now = tools_.clock.now();
    co_await changed_->wait_until(tools_.clock, now + (redraws ? tick : slow_tick));
    // In a large fleet some Node changes almost always, and each change causes an output. A wait of nine times the
    // duration of the last output limits all outputs to a tenth of the time.
    co_await tools_.clock.sleep_until(tools_.clock.now() + std::max(shortest_gap, 9 * (now - began)));
  }
}

// Ends the watch when the reader closes the output, even while nothing is written, as in `status -w | grep -m1
// degraded`.
asio::awaitable<void> StatusJob::look_for_reader() {
  while (tools_.out.has_reader()) co_await tools_.clock.sleep_until(tools_.clock.now() + tick);
  unread_ = true;
  changed_->notify();
}

// The view of the Nodes was seeded with a list, so its run() ends only by cancellation.
asio::awaitable<void> StatusJob::follow_nodes() {
  (void)co_await nodes_->run();
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
  if (!measure_ || !begun_)
    tools_.console.warn(now.empty() ? "the Nodes are watched again" : "the Nodes cannot be watched now: " + now);
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
    // Skip a node whose row is the same: what has changed is not a column of this table.
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
