#include "agent/gates/zone.hpp"

#include <date/tz.h>
#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/suggest.hpp"
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

// Returns the last line of a zoneinfo file: the rule for the time after the last listed change.
std::string footer_of(const std::string& name) {
  std::ifstream file(zoneinfo + name, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty() || bytes.back() != '\n') return {};
  bytes.pop_back();
  return bytes.substr(bytes.rfind('\n') + 1);
}

// Returns false if the file has the "slim" format, which leaves out the changes that follow from the footer. The date
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

}  // namespace haulout::agent
