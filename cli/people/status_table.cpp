#include "cli/people/status_table.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/people/node_state.hpp"
#include "drain/reasons.hpp"

namespace haulout::cli {
namespace {

constexpr std::string_view gap = "   ";
// On narrower terminals the columns are only as wide as their present content, to leave space for the messages.
constexpr std::size_t roomy = 99;

std::string or_none(const std::string& text) {
  return text.empty() ? "<none>" : printable(text);
}

std::string reboot_text(const NodeView& node) {
  if (node.requested) return "requested";
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
  return node.ready && !node.overdue && !node.requested && node.state == to_string(agent::State::idle) &&
         node.reboot_required == "false";
}

std::string last_attempt(const NodeView& node, WallTime now) {
  if (!node.last_attempt) return "<none>";
  return fmt::format("{} ({})", or_none(node.last_attempt->reason), age_text(node.last_attempt->at, now));
}

}  // namespace

StatusTable::Cells StatusTable::titles() const {
  Cells cells{"NAME", "STATE", "REASON", "REBOOT", "SINCE"};
  if (style_.wide) cells.insert(cells.end(), {"POOL", "TURN", "VERSIONS", "OS-IMAGE", "LAST-UPDATE", "LAST-ATTEMPT"});
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
  // Position of the column STATE in bytes. NAME and STATE are ASCII, so that a byte is a column.
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

// Wraps the notes to `width` if that takes at most `most` lines. Otherwise returns one line per note, at most `most`.
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
  // The least height: a header, a row, a blank line, two notes and the line of the cursor.
  if (terminal.width < 2 || terminal.height < 6) return {};
  std::vector<std::string> notes{count_line(fleet.nodes)};
  if (!trouble.empty()) notes.push_back("not connected, so this may be old: " + printable(trouble));
  for (std::string& line : hold_lines(fleet, now)) notes.push_back(std::move(line));
  const std::size_t width = terminal.width - 1;  // some terminals wrap a line that fills the last column
  const std::size_t room = terminal.height - 1;  // without the line of the cursor
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

}  // namespace haulout::cli
