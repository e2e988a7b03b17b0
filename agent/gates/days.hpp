// Which days of the calendar a window starts on: a weekday, an nth weekday of the month, or what cron's three day
// fields say. Pure.
#pragma once

#include <bitset>
#include <chrono>

namespace haulout::agent {

struct Days {
  std::bitset<13> months = ~std::bitset<13>();         // by number, 1 is January
  std::bitset<32> days_of_month = ~std::bitset<32>();  // by number
  std::bitset<7> weekdays = ~std::bitset<7>();         // 0 is Sunday
  std::bitset<7> nth = {};                             // none set: any; 1 to 5: the nth of its weekday; 6: the last
  bool either = false;  // the day of the month or the weekday is enough (cron, when both are restricted)

  static constexpr std::size_t last = 6;

  bool contains(std::chrono::year_month_day date) const;
  // Whether there is such a day at all: there is no February 30.
  bool possible() const;
};

}  // namespace haulout::agent
