#include <fmt/format.h>

#include "base/duration.hpp"
#include "rehearse/svg_chart.hpp"
#include "rehearse/timeline.hpp"

namespace haulout::rehearse {
namespace {

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
                                                row.left ? ": it is not waited for" : ""));
  }
  if (!row.vanished) return {};
  return chart.bar("leaves", index, row.sent.value_or(*row.vanished), *row.vanished,
                   row.pod + " was deleted by another client");
}

// A pod that is stuck is both terminating and waiting. Its waits are drawn in front.
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

}  // namespace haulout::rehearse
