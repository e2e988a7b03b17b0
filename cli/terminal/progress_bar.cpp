#include "cli/terminal/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::cli {
namespace {

std::function<Terminal()> measure_of(const agent::Process& process) {
  if (!can_redraw(STDERR_FILENO, process.environment)) return {};
  return [environment = process.environment] { return measure_terminal(STDERR_FILENO, environment); };
}

}  // namespace

std::string bar(std::size_t done, std::size_t total, std::size_t width, bool utf8) {
  const std::size_t filled = total == 0 ? 0 : width * std::min(done, total) / total;
  std::string result = utf8 ? "" : "[";
  for (std::size_t i = 0; i < width; ++i) result += i < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : "-");
  return result + (utf8 ? "" : "]");
}

std::string progress_line(const Advance& advance, Duration since, const Terminal& terminal) {
  const std::size_t width = std::max<std::size_t>(terminal.width, 1) - 1;
  const std::string count =
      advance.total == 0 ? std::to_string(advance.done) : fmt::format("{}/{}", advance.done, advance.total);
  const std::string rest =
      fmt::format("{} {}  {}", count, advance.unit, format_duration(std::chrono::floor<std::chrono::seconds>(since)));
  const std::size_t used = columns(advance.doing) + columns(rest) + 4 + (terminal.utf8 ? 0 : 2);
  if (advance.total == 0 || used + narrowest_bar > width)
    return clipped(advance.doing + "  " + rest, width, terminal.utf8);
  return advance.doing + "  " + bar(advance.done, advance.total, std::min(widest_bar, width - used), terminal.utf8) +
         "  " + rest;
}

ProgressBar::ProgressBar(agent::Process& process) : ProgressBar(process.err, process.clock, measure_of(process)) {}

ProgressBar::ProgressBar(agent::FdSink& err, Clock& clock, std::function<Terminal()> measure)
    : err_(err), clock_(clock), console_(err, err), measure_(std::move(measure)) {}

void ProgressBar::show(const Advance& advance) {
  if (!measure_) return;
  const TimePoint now = clock_.now();
  if (doing_ != advance.doing) {
    doing_ = advance.doing;
    begun_ = now;
  } else if (drawn_ && now - *drawn_ < shortest_gap) {
    return;
  }
  drawn_ = now;
  console_.set_block({progress_line(advance, now - begun_, measure_())});
  err_.pump();  // the computation does not return to the event loop, which would write the text
}

void ProgressBar::clear() {
  if (!drawn_) return;
  console_.set_block({});
  err_.pump();
  drawn_.reset();
  doing_.clear();
}

}  // namespace haulout::cli
