#include "agent/gates/pause.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view no_reason = "no reason given";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

Pause unreadable(std::string_view why, std::string_view reason) {
  return {fmt::format("{}{}annotation {}: {}; write \"2026-12-24T18:00:00Z; reason\", or \"; reason\" for no end",
                      reason, reason.empty() ? "" : " (", pause_annotation, why) +
          (reason.empty() ? "" : ")")};
}

}  // namespace

std::string pause_key(std::string_view pool) {
  return pool.empty() ? "pause" : fmt::format("pause.{}", pool);
}

Pause parse_pause_annotation(std::string_view value) {
  const std::size_t semicolon = value.find(';');
  // Control characters become blanks before blanks are trimmed, so that a reason of control characters alone is empty.
  const std::string shown = printable(value);
  const std::string written(trimmed(shown));
  if (written.empty()) return {std::string(no_reason)};
  if (semicolon == std::string_view::npos) {
    if (const auto until = k8s::parse_time(trimmed(value))) return {std::string(no_reason), *until};
    return unreadable("there is no \";\" after the time", written);
  }
  const std::string reason(trimmed(printable(value.substr(semicolon + 1))));
  const std::string_view end = trimmed(value.substr(0, semicolon));
  Pause pause{reason.empty() ? std::string(no_reason) : reason};
  if (end.empty()) return pause;
  const auto until = k8s::parse_time(end);
  if (!until) return unreadable(fmt::format("\"{}\" is not a time in RFC 3339", printable(end)), reason);
  pause.until = *until;
  return pause;
}

std::string format_pause_annotation(const Pause& pause) {
  return fmt::format("{}; {}", pause.until ? k8s::format_time(*pause.until) : "", printable(pause.reason));
}

bool in_force(const Pause& pause, WallTime now) {
  return !pause.until || now < *pause.until;
}

std::string describe(const Pause& pause) {
  return pause.until ? fmt::format("paused until {}: {}", k8s::format_time(*pause.until), pause.reason)
                     : fmt::format("paused: {}", pause.reason);
}

}  // namespace haulout::agent
