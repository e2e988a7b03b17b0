#include "rehearse/svg_chart.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::rehearse {
namespace {

constexpr double names_width = 280, chart_width = 720, row_height = 16, head = 64, foot = 56, margin = 16;
constexpr double note_height = 14;
constexpr std::size_t name_columns = 44;

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

// Returns the seconds between two lines of the grid. There are at most ten steps, and each is a round amount of time.
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

}  // namespace

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
                     escaped(clipped(text, name_columns)));
}

std::string SvgChart::bar(std::string_view css_class, std::size_t row, WallTime from, WallTime until,
                          std::string_view says) const {
  const double x = x_of(from);
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{}</title></rect>\n", css_class,
      x, y_of(row) + 2, std::max(1.5, x_of(until) - x), row_height - 4, escaped(says));
}

std::string SvgChart::mark(WallTime at) const {
  return fmt::format("<line class=\"mark\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n", x_of(at), head - 4,
                     bottom());
}

std::string SvgChart::note(std::size_t index, std::string_view text) const {
  return fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", margin,
                     bottom() + note_height * static_cast<double>(index + 1), escaped(text));
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
      width, height, margin, escaped(title), style);
  out += grid();
  out += inside;
  const double y = height - 16;
  double x = margin;
  const auto explain = [&](std::string_view means) {
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + 18, y, escaped(means));
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

}  // namespace haulout::rehearse
