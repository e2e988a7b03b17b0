#include "cli/migrate/kured_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "base/text.hpp"

namespace haulout::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Weekdays = std::bitset<7>;  // bit 0 is Sunday

constexpr std::array<std::string_view, 7> weekdays = {"sunday",   "monday", "tuesday", "wednesday",
                                                      "thursday", "friday", "saturday"};
constexpr std::array<std::string_view, 7> short_names = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr minutes whole_day = hours(24);

// Reads one number at the front of the text and removes it. `fixed`: it must have two digits, otherwise it may have one
// digit.
std::optional<unsigned> take_number(std::string_view& text, bool fixed) {
  std::size_t digits = 0;
  while (digits < 2 && digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || (fixed && digits != 2)) return std::nullopt;
  const auto number = parse_number<unsigned>(text.substr(0, digits));
  text.remove_prefix(digits);
  return number;
}

bool take_colon(std::string_view& text) {
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

// Returns the hour of the day, from the hour of a clock with twelve hours and "am" or "pm".
std::optional<unsigned> hour_of(unsigned hour, std::string_view half) {
  if (hour > 12) return std::nullopt;
  if (half == "am") return hour == 12 ? 0 : hour;
  if (half == "pm") return hour < 12 ? hour + 12 : hour;
  return std::nullopt;
}

// Writes the days as "Tue-Thu", "Sat,Sun" or "Mon-Wed,Fri", beginning with Monday.
std::string written(Weekdays days) {
  std::vector<std::string> parts;
  for (unsigned i = 0; i < 7;) {
    const auto day = [](unsigned position) { return (position + 1) % 7; };
    unsigned last = i;
    while (last < 7 && days[day(last)]) ++last;
    const unsigned length = last - i;
    if (length > 2) {
      parts.push_back(fmt::format("{}-{}", short_names[day(i)], short_names[day(last - 1)]));
    } else {
      for (unsigned one = i; one < last; ++one) parts.emplace_back(short_names[day(one)]);
    }
    i = std::max(last, i + 1);
  }
  return joined(parts, ",");
}

std::string clock(minutes time) {
  return fmt::format("{:02}:{:02}", time / hours(1), (time % hours(1)).count());
}

std::optional<Weekdays> read_days(const std::vector<std::string>& days, std::string& problem) {
  Weekdays found;
  for (const std::string& day : days) {
    if (day.empty()) continue;  // as in kured
    const auto number = kured_weekday(day);
    if (!number) {
      problem = fmt::format("kured knows no weekday \"{}\", and does not start with it", printable(day));
      return std::nullopt;
    }
    found.set(*number);
  }
  if (found.none()) {
    problem = "kured has no day on which it may reboot, and so it never does";
    return std::nullopt;
  }
  return found;
}

}  // namespace

std::optional<unsigned> kured_weekday(std::string_view text) {
  if (const auto number = parse_number<unsigned>(text)) return *number < 7 ? number : std::nullopt;
  const std::string name = lower_case(text);
  for (unsigned day = 0; day < 7; ++day)
    if (name == weekdays[day] || name == weekdays[day].substr(0, 3) || name == weekdays[day].substr(0, 2)) return day;
  return std::nullopt;
}

std::optional<seconds> kured_time(std::string_view text) {
  std::string_view rest = text;
  const auto hour = take_number(rest, false);
  if (!hour) return std::nullopt;
  const bool two_digits = text.size() - rest.size() == 2;
  const bool with_minutes = take_colon(rest);
  const auto minute = with_minutes ? take_number(rest, true) : 0U;
  if (!minute || *minute > 59) return std::nullopt;
  if (rest == "am" || rest == "pm") {
    const auto of_day = with_minutes && !two_digits ? std::nullopt : hour_of(*hour, rest);
    return of_day ? std::optional<seconds>(hours(*of_day) + minutes(*minute)) : std::nullopt;
  }
  const auto second = with_minutes && take_colon(rest) ? take_number(rest, true) : 0U;
  if (!second || *second > 59 || *hour > 23 || !rest.empty()) return std::nullopt;
  return hours(*hour) + minutes(*minute) + seconds(*second);
}

KuredWindow kured_window(const std::vector<std::string>& days, const std::string& start, const std::string& end,
                         const std::string& zone) {
  KuredWindow result;
  const auto on = read_days(days, result.problem);
  if (!on) return result;
  const auto from = kured_time(start);
  const auto to = kured_time(end);
  if (!from || !to) {
    result.problem =
        fmt::format("kured knows no time of day \"{}\", and does not start with it", printable(from ? end : start));
    return result;
  }
  // The last second counts, too: until 23:59:59 is until midnight. Haulout's windows begin and end with a minute.
  const minutes begin = std::chrono::ceil<minutes>(*from);
  const minutes finish = std::chrono::floor<minutes>(*to + seconds(1));
  const bool rounded = begin != *from || (*to % minutes(1) != seconds(0) && finish != *to + seconds(1));
  if (rounded) result.note = "windows begin and end with a minute, so the seconds make this one shorter";

  const std::string prefix = on->all() ? "" : written(*on) + " ";
  const std::string suffix = zone == "UTC" ? "" : " " + zone;
  const auto add = [&](minutes first, minutes last) {
    if (first < last) result.windows.push_back(prefix + clock(first) + "-" + clock(last) + suffix);
  };
  const bool over_midnight = *from > *to;
  if (over_midnight ? begin <= finish : begin == minutes(0) && finish == whole_day) {
    if (!on->all()) add(minutes(0), whole_day);
    return result;
  }
  if (!over_midnight) {
    add(begin, finish);
  } else if (on->all() && finish > minutes(0) && begin < whole_day) {
    result.windows.push_back(clock(begin) + "-" + clock(finish) + suffix);
  } else {
    add(minutes(0), finish);
    add(begin, whole_day);
    if (!on->all() && result.windows.size() == 2)
      result.note += std::string(result.note.empty() ? "" : "; ") +
                     "kured's days count on both sides of midnight, and so do these two windows";
  }
  if (result.windows.empty()) result.problem = "the window of kured is shorter than a minute";
  return result;
}

}  // namespace haulout::cli
