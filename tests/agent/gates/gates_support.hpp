// Helpers of the gate tests: they convert times to and from text, and a schedule to the list of its open periods. No
// I/O.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "agent/gates/window.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {

// Parses a time in UTC such as "2026-11-28T01:00". Throws if the text is invalid.
inline WallTime utc(const std::string& text) {
  const auto time = k8s::parse_time(text + ":00Z");
  if (!time) throw std::logic_error("the test writes a time wrongly: " + text);
  return *time;
}

inline std::string utc(WallTime time) {
  return k8s::format_time(time).substr(0, 16);
}

inline std::string utc(const std::optional<WallTime>& time) {
  return time ? utc(*time) : "never";
}

inline Window window(const std::string& text) {
  auto parsed = parse_window(text);
  if (!parsed) throw std::logic_error("the test writes a window wrongly: " + parsed.error().message());
  return *std::move(parsed);
}

inline Blackout blackout(const std::string& text) {
  auto parsed = parse_blackout(text);
  if (!parsed) throw std::logic_error("the test writes a black-out wrongly: " + parsed.error().message());
  return *std::move(parsed);
}

inline Schedule schedule(const std::vector<std::string>& windows, const std::vector<std::string>& blackouts = {}) {
  std::vector<Window> opens;
  std::vector<Blackout> closes;
  for (const std::string& text : windows) opens.push_back(window(text));
  for (const std::string& text : blackouts) closes.push_back(blackout(text));
  return Schedule(std::move(opens), std::move(closes));
}

// Returns the next `count` periods in which the schedule is open, from `from` on: "2026-11-21T22:00/2026-11-22T02:00".
// A period without an end is "…/never".
inline std::vector<std::string> openings(const Schedule& schedule, const std::string& from, std::size_t count) {
  std::vector<std::string> found;
  WallTime now = utc(from);
  while (found.size() < count) {
    Schedule::State state = schedule.at(now);
    if (!state.open) {
      if (!state.next_open) {
        found.push_back("never");
        break;
      }
      now = *state.next_open;
      state = schedule.at(now);
      EXPECT_TRUE(state.open) << "it said that it opens " << utc(now);
      if (!state.open) break;
    }
    found.push_back(utc(now) + "/" + utc(state.until));
    if (!state.until) break;
    now = *state.until;
    EXPECT_FALSE(schedule.at(now).open) << "it said that it closes " << utc(now);
  }
  return found;
}

struct Openings {
  std::string window;
  std::string from;
  std::vector<std::string> expected;
};

inline void check(const std::vector<Openings>& rows) {
  for (const Openings& row : rows) {
    const auto parsed = parse_window(row.window);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
    EXPECT_EQ(openings(Schedule({*parsed}, {}), row.from, row.expected.size()), row.expected)
        << row.window << " from " << row.from;
  }
}

}  // namespace haulout::agent
