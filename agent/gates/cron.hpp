// The five fields of cron as the days and times of day at which something starts. Pure.
//
//   minute 0-59 · hour 0-23 · day of month 1-31 · month 1-12 or JAN-DEC · day of week 0-7 or SUN-SAT (0 and 7: Sunday)
//
// A field is `*`, a number, a name, a range `a-b`, a step `*/n` or `a-b/n`, or a list of these with commas. As in Vixie
// cron, when neither day field starts with `*`, either of them is enough; otherwise both must hold.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "agent/gates/days.hpp"
#include "agent/gates/grammar.hpp"

namespace haulout::agent {

struct CronStarts {
  Days days;
  std::vector<std::chrono::minutes> times;  // of day, ascending, at least one
};

// `fields` is what stands between the brackets and `at` where in the text that `grammar` reads, for its errors.
Result<CronStarts> parse_cron(const Grammar& grammar, std::string_view fields, std::size_t at);

}  // namespace haulout::agent
