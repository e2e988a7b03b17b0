// Progress as a bar. A ProgressBar shows one on a terminal, in one line that is redrawn in place, while a computation
// blocks the thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/terminal/console.hpp"
#include "retry/clock.hpp"

namespace haulout::cli {

inline constexpr std::size_t widest_bar = 40;
inline constexpr std::size_t narrowest_bar = 8;
// Returns a bar of this width. Without UTF-8 it takes two columns more, for the brackets around it.
std::string bar(std::size_t done, std::size_t total, std::size_t width, bool utf8);

// How far the computation has come.
struct Advance {
  std::string doing;      // "rehearsing"
  std::size_t done = 0;   // number of units
  std::size_t total = 0;  // 0: unknown, so the line has no bar
  std::string unit{};     // plural: "nodes"
};

// Returns the line: "rehearsing  ████░░░░  812/2000 nodes  1m05s". It is narrower than the terminal.
std::string progress_line(const Advance& advance, Duration since, const Terminal& terminal);

class ProgressBar {
 public:
  static constexpr Duration shortest_gap = std::chrono::milliseconds(100);

  // Writes to stderr if it is a terminal that can move its cursor; otherwise shows nothing. Borrows the process.
  explicit ProgressBar(agent::Process& process);
  // Writes to `err`. `measure` is called before each drawing; if it is unset, nothing is shown. Borrows sink and clock.
  ProgressBar(agent::FdSink& err, Clock& clock, std::function<Terminal()> measure);

  // Draws the line, at most once in `shortest_gap`. What is said between is not shown.
  void show(const Advance& advance);
  // Removes the line. A later show() draws it again.
  void clear();

 private:
  agent::FdSink& err_;
  Clock& clock_;
  Console console_;
  std::function<Terminal()> measure_;
  std::string doing_;
  TimePoint begun_{};  // when it began to do this
  std::optional<TimePoint> drawn_;
};

}  // namespace haulout::cli
