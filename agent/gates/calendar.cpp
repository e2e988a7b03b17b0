#include "agent/gates/calendar.hpp"

#include <date/tz.h>
#include <fmt/format.h>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/text.hpp"

namespace haulout::agent {

namespace {

using std::chrono::seconds;

constexpr const char* zoneinfo = "/usr/share/zoneinfo/";  // where the date library reads the zones

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// Suggests a known name: Europe/Berlin for "europe/berlin" and "Berlin", otherwise the name with the nearest spelling.
std::optional<std::string> meant(std::string_view typed, const std::vector<std::string>& known) {
  for (const std::string& name : known) {
    if (same_letters(typed, name)) return name;
  }
  for (const std::string& name : known) {
    if (same_letters(typed, std::string_view(name).substr(name.rfind('/') + 1))) return name;
  }
  return nearest(typed, known);
}

Error unknown(std::string_view typed, const date::tzdb& database) {
  std::vector<std::string> known = {"UTC"};
  for (const date::time_zone& zone : database.zones) known.push_back(zone.name());
  const auto suggestion = meant(typed, known);
  return Error(Errc::invalid, fmt::format("unknown time zone \"{}\"; {}", printable(typed),
                                          suggestion ? fmt::format("did you mean {}?", *suggestion)
                                                     : "write the name of an IANA zone, for example Europe/Berlin"));
}

// Returns the last line of a zoneinfo file: the rule for the time after the last change that the file lists.
std::string footer_of(const std::string& name) {
  std::ifstream file(zoneinfo + name, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty() || bytes.back() != '\n') return {};
  bytes.pop_back();
  return bytes.substr(bytes.rfind('\n') + 1);
}

// Returns false if the file has the "slim" format, which omits the changes that follow from the footer. The date
// library reads only listed changes, so such a zone would silently keep the offset of its last one (for example of
// 1996).
bool lists_its_changes(const date::time_zone& zone) {
  const bool changes = footer_of(zone.name()).find(',') != std::string::npos;
  const date::sys_seconds late = date::sys_days(date::year(2036) / 7 / 1);
  return !changes || zone.get_info(late).end < late + date::years(1);
}

}  // namespace

Result<Zone> Zone::find(std::string_view name) {
  Zone found;
  if (name == "UTC" || name == "Etc/UTC") return found;
  found.name_ = std::string(name);
  try {
    const date::tzdb& database = date::get_tzdb();
    if (database.zones.empty()) throw std::runtime_error("it contains no zones");
    const auto at = std::find_if(database.zones.begin(), database.zones.end(),
                                 [&](const date::time_zone& zone) { return zone.name() == name; });
    if (at == database.zones.end()) return unknown(name, database);
    if (!lists_its_changes(*at)) {
      return Error(Errc::unavailable,
                   fmt::format("time zone {}: {}{} lacks the changes to and from summer time (slim format); install "
                               "zoneinfo in the fat format (zic -b fat), or write the times in UTC",
                               name, zoneinfo, name));
    }
    found.zone_ = &*at;
    return found;
  } catch (const std::exception& problem) {
    return Error(Errc::unavailable, fmt::format("time zone {}: {} cannot be read ({}); install the package tzdata, or "
                                                "write the times in UTC",
                                                printable(name), zoneinfo, printable(problem.what())));
  }
}

LocalTime Zone::local(WallTime at) const {
  const auto second = std::chrono::floor<seconds>(at);
  const seconds offset = zone_ == nullptr ? seconds(0) : zone_->get_info(second).offset;
  return LocalTime(second.time_since_epoch() + offset);
}

WallTime Zone::instant(LocalTime shown) const {
  const seconds since = shown.time_since_epoch();
  if (zone_ == nullptr) return WallTime(since);
  const date::local_info info = zone_->get_info(date::local_seconds(since));
  if (info.result == date::local_info::nonexistent) return info.first.end;
  return WallTime(since - info.first.offset);
}

std::string Zone::shown(WallTime at) const {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const LocalTime clock = local(at);
  const auto day = std::chrono::floor<std::chrono::days>(clock);
  const std::chrono::year_month_day calendar(day);
  const std::chrono::hh_mm_ss time(clock - day);
  return fmt::format("{} {:04}-{:02}-{:02} {:02}:{:02} {}", days[std::chrono::weekday(day).c_encoding()],
                     static_cast<int>(calendar.year()), static_cast<unsigned>(calendar.month()),
                     static_cast<unsigned>(calendar.day()), time.hours().count(), time.minutes().count(),
                     zone_ == nullptr ? "UTC" : zone_->get_info(std::chrono::floor<seconds>(at)).abbrev);
}

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
  if (between && (std::chrono::local_days(date) < between->first || std::chrono::local_days(date) > between->second))
    return false;
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

namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::minutes;

local_days day_of(const Zone& zone, WallTime at) {
  return std::chrono::floor<days>(zone.local(at));
}

minutes end_on_clock(minutes start, minutes end) {
  return end > start ? end : end + days(1);
}

// Of all starts with the same end, keeps only the first. The result has at most one start before the end's time of day
// and one after it.
std::vector<minutes> first_per_end(const std::vector<minutes>& times, minutes end) {
  std::vector<minutes> kept;
  for (const minutes time : times) {
    if (kept.empty() || end_on_clock(kept.back(), end) != end_on_clock(time, end)) kept.push_back(time);
  }
  return kept;
}

// Appends `next` to `pieces`, or extends the last piece if `next` overlaps or touches it. The caller passes the pieces
// in ascending order of `begin`.
template <class Piece>
void append_merged(std::vector<Piece>& pieces, const Piece& next) {
  if (!pieces.empty() && next.begin <= pieces.back().end)
    pieces.back().end = std::max(pieces.back().end, next.end);
  else
    pieces.push_back(next);
}

}  // namespace

Recurrence::Recurrence(Days on_days, std::vector<minutes> times, Length length, Zone zone)
    : days_(on_days), times_(std::move(times)), length_(length), zone_(std::move(zone)), looks_back_(2) {
  if (const auto* until = std::get_if<UntilClock>(&length_)) {
    times_ = first_per_end(times_, until->time);
    return;
  }
  const seconds elapsed = std::get<ForElapsed>(length_).length;
  looks_back_ += std::chrono::ceil<days>(elapsed);
  for (const minutes time : times_) append_merged(spans_, Span{time, time + elapsed});
}

Interval Recurrence::starting(local_days day, minutes time) const {
  const WallTime begin = zone_.instant(day + time);
  if (const auto* until = std::get_if<UntilClock>(&length_)) {
    return {begin, zone_.instant(day + end_on_clock(time, until->time))};
  }
  return {begin, begin + std::get<ForElapsed>(length_).length};
}

std::vector<Interval> Recurrence::on(local_days day) const {
  std::vector<Interval> found;
  if (!days_.contains(std::chrono::year_month_day(day))) return found;
  const WallTime midnight = zone_.instant(day);
  const bool steady = zone_.instant(day + days(1)) - midnight == days(1) && zone_.local(midnight) == LocalTime(day);
  if (steady && !spans_.empty()) {
    for (const Span& span : spans_) found.push_back({midnight + span.begin, midnight + span.end});
    return found;
  }
  for (const minutes time : times_) {
    const Interval next = starting(day, time);
    if (next.begin < next.end) append_merged(found, next);
  }
  return found;
}

std::optional<WallTime> Recurrence::end_of(WallTime at) const {
  std::optional<WallTime> end;
  const local_days today = day_of(zone_, at);
  // Includes tomorrow, because a clock that is set back over midnight shows the old day again after the new one has
  // begun.
  for (local_days day = today - looks_back_; day <= today + days(1); day += days(1)) {
    for (const Interval& interval : on(day)) {
      if (interval.contains(at) && (!end || interval.end > *end)) end = interval.end;
    }
  }
  return end;
}

bool Recurrence::is_over(WallTime at) const {
  return days_.between && day_of(zone_, at) > days_.between->second && !end_of(at);
}

std::optional<WallTime> Recurrence::next_start(WallTime at, WallTime horizon) const {
  const local_days last = day_of(zone_, horizon) + days(1);
  for (local_days day = day_of(zone_, at) - days(1); day <= last; day += days(1)) {
    for (const Interval& interval : on(day)) {
      if (interval.begin > at) return interval.begin < horizon ? std::optional(interval.begin) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace haulout::agent
