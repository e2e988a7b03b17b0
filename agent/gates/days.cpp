#include "agent/gates/days.hpp"

namespace haulout::agent {
namespace {

using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::weekday;
using std::chrono::year;
using std::chrono::year_month;
using std::chrono::year_month_day;

unsigned days_in(year_month month) {
  return static_cast<unsigned>((month / std::chrono::last).day());
}

bool is_nth(const std::bitset<7>& nth, year_month_day date) {
  const auto day = static_cast<unsigned>(date.day());
  return nth[(day - 1) / 7 + 1] || (nth[Days::last] && day + 7 > days_in(date.year() / date.month()));
}

}  // namespace

bool Days::contains(year_month_day date) const {
  if (!months[static_cast<unsigned>(date.month())]) return false;
  if (nth.any() && !is_nth(nth, date)) return false;
  const bool by_number = days_of_month[static_cast<unsigned>(date.day())];
  const bool by_name = weekdays[weekday(sys_days(date)).c_encoding()];
  return either ? by_number || by_name : by_number && by_name;
}

bool Days::possible() const {
  if (either) return true;
  const year leap(2028);
  for (unsigned m = 1; m <= 12; ++m) {
    for (unsigned d = 1; months[m] && d <= days_in(leap / month(m)); ++d) {
      if (days_of_month[d]) return true;
    }
  }
  return false;
}

}  // namespace haulout::agent
