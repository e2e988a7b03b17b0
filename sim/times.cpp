#include "sim/times.hpp"

#include <fmt/format.h>

#include <charconv>

namespace haulout::sim {
namespace {

std::string format(WallTime time, bool micro) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                                 clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  if (micro) text += fmt::format(".{:06}", clock.subseconds().count());
  return text + "Z";
}

std::optional<int> number(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  if (text.size() < at + digits) return std::nullopt;
  const char* end = text.data() + at + digits;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string to_time(WallTime time) {
  return format(time, false);
}
std::string to_micro_time(WallTime time) {
  return format(time, true);
}

std::optional<WallTime> from_time(std::string_view text) {
  const auto year = number(text, 0, 4), month = number(text, 5, 2), day = number(text, 8, 2);
  const auto hour = number(text, 11, 2), minute = number(text, 14, 2), second = number(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second || text.back() != 'Z') return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  WallTime time = std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
                  std::chrono::seconds(*second);
  if (text.size() > 20 && text[19] == '.') {
    std::string fraction(text.substr(20, text.size() - 21));
    fraction.resize(6, '0');
    const auto micros = number(fraction, 0, 6);
    if (!micros) return std::nullopt;
    time += std::chrono::microseconds(*micros);
  }
  return time;
}

}  // namespace haulout::sim
