// Parses the five fields of cron into the days and times of day at which a window starts. Pure.
//
//   minute 0-59 · hour 0-23 · day of month 1-31 · month 1-12 or JAN-DEC · day of week 0-7 or SUN-SAT (0, 7: Sunday)
//
// A field is `*`, a number, a name, a range `a-b`, a step `*/n` or `a-b/n`, or a list of these with commas. As in Vixie
// cron, if neither day field starts with `*`, a day must match only one of them. Otherwise it must match both.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "agent/gates/days.hpp"
#include "agent/gates/grammar.hpp"

namespace haulout::agent {

struct CronStarts {
  Days days;
  std::vector<std::chrono::minutes> times;  // times of day, ascending, at least one
};

// `fields` is the text between the brackets. `at` is its position in the text of `grammar`, for error messages.
// Errc::invalid if a field is wrong or no day matches.
Result<CronStarts> parse_cron(const Grammar& grammar, std::string_view fields, std::size_t at);

}  // namespace haulout::agent
