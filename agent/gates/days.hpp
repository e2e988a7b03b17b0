// The days of the calendar on which a window starts: weekdays, nth weekdays of the month, or the days that the three
// day fields of cron select (day of month, month and day of week). Pure.
#pragma once

#include <bitset>
#include <chrono>

namespace haulout::agent {

struct Days {
  std::bitset<13> months = ~std::bitset<13>();         // bit 1 is January
  std::bitset<32> days_of_month = ~std::bitset<32>();  // bit 1 is the first day
  std::bitset<7> weekdays = ~std::bitset<7>();         // bit 0 is Sunday
  std::bitset<7> nth = {};  // bit n: the nth such weekday of the month (1 to 5); bit 6: the last one; no bit: all
  bool either = false;      // day of month or weekday must match, not both (cron, if both are restricted)

  static constexpr std::size_t last = 6;

  bool contains(std::chrono::year_month_day date) const;
  // Whether any day of the calendar can match. For example, February 30 cannot.
  bool possible() const;
};

}  // namespace haulout::agent
