#include "rehearse/charts.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/duration.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "base/xml.hpp"
#include "retry/clock.hpp"

namespace haulout::rehearse {
namespace {

// Draws bars over time as a self-contained SVG file. Each row shows one item; time runs from left to right.
class SvgChart {
 public:
  // The chart shows the time from `begin` to `end`, but at least one second. It has `rows` rows.
  SvgChart(WallTime begin, WallTime end, std::size_t rows);

  // name() and bar() return SVG elements of a row: its name, shortened to the width of the column of names, and a bar
  // with this CSS class and with `says` as its tooltip.
  std::string name(std::size_t row, std::string_view text) const;
  std::string bar(std::string_view css_class, std::size_t row, WallTime from, WallTime until,
                  std::string_view says) const;
  // Returns a vertical line across all rows, at this time.
  std::string mark(WallTime at) const;
  // Returns a line of text below the rows. `index` is the number of the line, from 0.
  std::string note(std::size_t index, std::string_view text) const;

  struct Key {
    std::string css_class;
    std::string colour;  // a CSS colour
    std::string means;
  };
  // Returns the whole SVG file. Its legend explains the bars by `keys` and, unless `marks` is empty, the vertical lines
  // by `marks`. `inside` is the concatenation of what name(), bar(), mark() and note() have returned; `notes` is the
  // number of notes in it.
  std::string file(std::string_view title, const std::vector<Key>& keys, std::string_view marks, std::size_t notes,
                   std::string_view inside) const;

 private:
  double bottom() const;
  double x_of(WallTime time) const;
  std::string grid() const;

  WallTime begin_;
  double span_;  // seconds from begin to end
  std::size_t rows_;
};

constexpr double names_width = 280, chart_width = 720, row_height = 16, head = 64, foot = 56, margin = 16;
constexpr double note_height = 14;
constexpr std::size_t name_columns = 44;

// Returns the distance between two lines of the grid, in seconds: a round amount of time, so that there are at most ten
// steps.
double grid_step(double seconds) {
  for (const double step : {1., 2., 5., 10., 15., 30., 60., 120., 300., 600., 900., 1800., 3600., 7200., 21600.})
    if (seconds / step <= 10) return step;
  return 86400 * std::ceil(seconds / 864000);
}

Duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

double y_of(std::size_t row) {
  return head + row_height * static_cast<double>(row);
}

SvgChart::SvgChart(WallTime begin, WallTime end, std::size_t rows)
    : begin_(begin), span_(std::max(1.0, std::chrono::duration<double>(end - begin).count())), rows_(rows) {}

double SvgChart::bottom() const {
  return y_of(rows_);
}

double SvgChart::x_of(WallTime time) const {
  const double share = std::chrono::duration<double>(time - begin_).count() / span_;
  return margin + names_width + chart_width * std::clamp(share, 0.0, 1.0);
}

std::string SvgChart::grid() const {
  std::string out;
  const double step = grid_step(span_);
  for (int line = 0; line * step <= span_; ++line) {
    const double second = line * step;
    const double x = margin + names_width + chart_width * second / span_;
    out += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n", x, head - 4,
                       bottom());
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, head - 10,
                       second == 0 ? "0" : format_duration(seconds_of(second)));
  }
  return out;
}

std::string SvgChart::name(std::size_t row, std::string_view text) const {
  return fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", margin, y_of(row) + row_height - 5,
                     xml_escaped(clipped(text, name_columns)));
}

std::string SvgChart::bar(std::string_view css_class, std::size_t row, WallTime from, WallTime until,
                          std::string_view says) const {
  const double x = x_of(from);
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{}</title></rect>\n", css_class,
      x, y_of(row) + 2, std::max(1.5, x_of(until) - x), row_height - 4, xml_escaped(says));
}

std::string SvgChart::mark(WallTime at) const {
  return fmt::format("<line class=\"mark\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n", x_of(at), head - 4,
                     bottom());
}

std::string SvgChart::note(std::size_t index, std::string_view text) const {
  return fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", margin,
                     bottom() + note_height * static_cast<double>(index + 1), xml_escaped(text));
}

std::string SvgChart::file(std::string_view title, const std::vector<Key>& keys, std::string_view marks,
                           std::size_t notes, std::string_view inside) const {
  const double width = 2 * margin + names_width + chart_width;
  const double height = bottom() + foot + note_height * static_cast<double>(notes);
  std::string style;
  for (const Key& key : keys) style += fmt::format(".{}{{fill:{}}}", key.css_class, key.colour);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "<style>text{{font:11px sans-serif;fill:#333}}.title{{font:bold 15px sans-serif}}.grid{{stroke:#ddd}}"
      ".mark{{stroke:#c33;stroke-dasharray:3 3}}{4}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n<text class=\"title\" x=\"{2}\" y=\"24\">{3}</text>\n",
      width, height, margin, xml_escaped(title), style);
  out += grid();
  out += inside;
  const double y = height - 16;
  double x = margin;
  const auto explain = [&](std::string_view means) {
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + 18, y, xml_escaped(means));
    x += 18 + 7 * static_cast<double>(columns(means)) + 16;
  };
  for (const Key& key : keys) {
    out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"12\" height=\"10\"/>", key.css_class, x, y - 9);
    explain(key.means);
  }
  if (!marks.empty()) {
    out += fmt::format("<line class=\"mark\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", x, y - 4, x + 14, y - 4);
    explain(marks);
  }
  return out + "</svg>\n";
}

WallTime begin_of(const Timeline& timeline) {
  WallTime begin = timeline.last();
  for (const Timeline::Node& node : timeline.nodes()) begin = std::min(begin, node.began);
  return begin;
}

std::string leaving(const SvgChart& chart, const Timeline::Row& row, std::size_t index, WallTime end) {
  if (row.leaving) {
    const std::string how_long = format_duration(row.vanished.value_or(end) - *row.leaving);
    return chart.bar("leaves", index, *row.leaving, row.vanished.value_or(end),
                     row.vanished ? fmt::format("{} terminated for {}", row.pod, how_long)
                                  : fmt::format("{} has been terminating for {}, and still exists{}", row.pod, how_long,
                                                row.left ? "; the drain does not wait for it" : ""));
  }
  if (!row.vanished) return {};
  return chart.bar("leaves", index, row.sent.value_or(*row.vanished), *row.vanished,
                   row.pod + " was deleted by another client");
}

// Returns the row of a pod. The waits are drawn in front, because a pod that is stuck is both terminating and waiting.
std::string drawn(const SvgChart& chart, const Timeline::Row& row, std::size_t index, WallTime end) {
  std::string out = "<g>" + chart.name(index, row.pod) + leaving(chart, row, index, end);
  for (const Timeline::Wait& wait : row.waits) {
    const WallTime until = wait.until.value_or(end);
    out += chart.bar(
        "waits", index, wait.from, until,
        fmt::format("{} waited {}: {} [{}]", row.pod, format_duration(until - wait.from), wait.message, wait.reason));
  }
  return out + "</g>\n";
}

}  // namespace

std::string timeline_svg(const Timeline& timeline, const std::string& title) {
  const SvgChart chart(begin_of(timeline), timeline.last(), timeline.rows().size());
  std::string inside;
  for (std::size_t i = 0; i < timeline.rows().size(); ++i)
    inside += drawn(chart, timeline.rows()[i], i, timeline.last());
  std::size_t notes = 0;
  for (const Timeline::Node& node : timeline.nodes()) {
    if (node.cordoned) inside += chart.mark(*node.cordoned);
    inside += chart.note(notes++, fmt::format("node/{}: {}", node.name, node.ended ? node.outcome : "not ended"));
  }
  return chart.file(title, {{"waits", "#e9a23b", "waits"}, {"leaves", "#3b7dd8", "terminates"}}, "cordoned", notes,
                    inside);
}

namespace {

// Returns the CSS class of the bar of a state. Returns an empty string for states in which the agent does nothing: the
// chart has no bar for them.
std::string_view class_of(agent::State state) {
  switch (state) {
    case agent::State::draining: return "drains";
    case agent::State::updating:
    case agent::State::ready:
    case agent::State::rebooting:
    case agent::State::verifying:
    case agent::State::uncordoning: return "reboots";
    case agent::State::soaking: return "soaks";
    case agent::State::degraded: return "stopped";
    case agent::State::pending:
    case agent::State::waiting: return "in-line";
    case agent::State::unknown:
    case agent::State::idle: return {};
  }
  return {};
}

std::string drawn(const SvgChart& chart, const FleetNode& node, std::size_t row, WallTime end) {
  std::string out =
      "<g>" + chart.name(row, node.left_out.empty() ? node.name : node.name + " (left out: " + node.left_out + ")");
  for (const FleetPhase& phase : node.phases) {
    const WallTime until = std::min(phase.until.value_or(end), end);
    if (class_of(phase.state).empty() || until < phase.from) continue;
    // The messages of earlier phases are not recorded, so only the last phase shows one.
    const std::string why = phase.until || node.message.empty() ? std::string() : ": " + node.message;
    out += chart.bar(
        class_of(phase.state), row, phase.from, until,
        fmt::format("{} was {} for {}{}", node.name, to_string(phase.state), format_duration(until - phase.from), why));
  }
  return out + "</g>\n";
}

}  // namespace

std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title) {
  const SvgChart chart(rehearsal.began, rehearsal.ended, rehearsal.nodes.size());
  std::string inside;
  for (std::size_t i = 0; i < rehearsal.nodes.size(); ++i)
    inside += drawn(chart, rehearsal.nodes[i], i, rehearsal.ended);
  return chart.file(title,
                    {{"in-line", "#ddd", "waits for a gate or a slot"},
                     {"drains", "#e9a23b", "drains"},
                     {"reboots", "#3b7dd8", "reboots and is verified"},
                     {"soaks", "#9cc79c", "soaks"},
                     {"stopped", "#c33", "degraded"}},
                    {}, 0, inside);
}

namespace {

Result<> of_the_flag(const Result<>& written) {
  if (written) return {};
  return Error(Errc::invalid, "--timeline " + written.error().message());
}

}  // namespace

Result<> can_write_timeline(const std::string& path) {
  return path.empty() ? Result<>() : of_the_flag(can_write_whole_file(path));
}

Result<> write_timeline(const std::string& path, const Timeline& timeline, const std::string& title) {
  return write_picture(path, timeline_svg(timeline, title));
}

Result<> write_picture(const std::string& path, const std::string& svg) {
  return path.empty() ? Result<>() : of_the_flag(write_whole_file(path, svg));
}

}  // namespace haulout::rehearse
