#include <fmt/format.h>

#include <cmath>

#include "agent/duration.hpp"
#include "agent/text.hpp"
#include "agent/timeline.hpp"

namespace haulout::agent {
namespace {

constexpr double names_width = 280, chart_width = 720, row_height = 16, head = 64, foot = 56, margin = 16;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  return result;
}

// Seconds between two lines of the grid: at most ten of them, at a number that people count in.
double grid_step(double seconds) {
  for (const double step : {1., 2., 5., 10., 15., 30., 60., 120., 300., 600., 900., 1800., 3600., 7200., 21600.})
    if (seconds / step <= 10) return step;
  return 86400 * std::ceil(seconds / 864000);
}

Duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

class Chart {
 public:
  explicit Chart(const Timeline& timeline) : timeline_(timeline), begin_(timeline.last()) {
    for (const Timeline::Node& node : timeline.nodes()) begin_ = std::min(begin_, node.began);
    span_ = std::max(1.0, std::chrono::duration<double>(timeline.last() - begin_).count());
  }

  double bottom() const { return head + row_height * static_cast<double>(timeline_.rows().size()); }
  double at(WallTime time) const {
    const double share = std::chrono::duration<double>(time - begin_).count() / span_;
    return margin + names_width + chart_width * std::clamp(share, 0.0, 1.0);
  }

  std::string grid() const {
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

  std::string row(const Timeline::Row& row, std::size_t index) const {
    const double y = head + row_height * static_cast<double>(index);
    std::string out = fmt::format("<g><text x=\"{}\" y=\"{}\">{}</text>\n", margin, y + row_height - 5,
                                  escaped(clipped(row.pod, 44)));
    for (const Timeline::Wait& wait : row.waits) {
      const WallTime until = wait.until.value_or(timeline_.last());
      out += bar(
          "waits", y, wait.from, until,
          fmt::format("{} waited {}: {} [{}]", row.pod, format_duration(until - wait.from), wait.message, wait.reason));
    }
    if (row.evicted) {
      const WallTime until = row.vanished.value_or(timeline_.last());
      out += bar("leaves", y, *row.evicted, until,
                 fmt::format("{} terminated for {}", row.pod, format_duration(until - *row.evicted)));
    } else if (row.vanished) {
      out += bar("leaves", y, row.sent.value_or(*row.vanished), *row.vanished, row.pod + " went by itself");
    }
    return out + "</g>\n";
  }

  std::string ends() const {
    std::string out;
    double y = bottom() + 14;
    for (const Timeline::Node& node : timeline_.nodes()) {
      if (node.cordoned)
        out += fmt::format("<line class=\"mark\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n",
                           at(*node.cordoned), head - 4, bottom());
      out += fmt::format("<text x=\"{}\" y=\"{}\">node/{}: {}</text>\n", margin, y, escaped(node.name),
                         node.ended ? escaped(node.outcome) : "not ended");
      y += 14;
    }
    return out;
  }

 private:
  std::string bar(const char* what, double y, WallTime from, WallTime until, const std::string& says) const {
    const double x = at(from);
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{}</title></rect>\n", what, x,
        y + 2, std::max(1.5, at(until) - x), row_height - 4, escaped(says));
  }

  const Timeline& timeline_;
  WallTime begin_;
  double span_ = 1;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline, const std::string& title) {
  const Chart chart(timeline);
  const double width = 2 * margin + names_width + chart_width;
  const double height = chart.bottom() + foot + 14 * static_cast<double>(timeline.nodes().size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "<style>text{{font:11px sans-serif;fill:#333}}.title{{font:bold 15px sans-serif}}.grid{{stroke:#ddd}}"
      ".mark{{stroke:#c33;stroke-dasharray:3 3}}.waits{{fill:#e9a23b}}.leaves{{fill:#3b7dd8}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n<text class=\"title\" x=\"{2}\" y=\"24\">{3}</text>\n",
      width, height, margin, escaped(title));
  out += chart.grid();
  std::size_t index = 0;
  for (const Timeline::Row& row : timeline.rows()) out += chart.row(row, index++);
  out += chart.ends();
  const double y = height - 16;
  out += fmt::format(
      "<rect class=\"waits\" x=\"{0}\" y=\"{1}\" width=\"12\" height=\"10\"/><text x=\"{2}\" y=\"{3}\">waits</text>\n"
      "<rect class=\"leaves\" x=\"{4}\" y=\"{1}\" width=\"12\" height=\"10\"/><text x=\"{5}\" y=\"{3}\">terminates"
      "</text>\n<line class=\"mark\" x1=\"{6}\" y1=\"{7}\" x2=\"{8}\" y2=\"{7}\"/><text x=\"{9}\" y=\"{3}\">cordoned"
      "</text>\n</svg>\n",
      margin, y - 9, margin + 18, y, margin + 70, margin + 88, margin + 170, y - 4, margin + 190, margin + 196);
  return out;
}

}  // namespace haulout::agent
