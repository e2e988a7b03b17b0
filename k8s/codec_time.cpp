#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "k8s/codec.hpp"

namespace haulout::k8s {
namespace {

using std::chrono::microseconds;

// Reads numbers of fixed width and single characters from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int number(std::size_t digits) {
    if (rest_.size() < digits) return fail();
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!digit(rest_[i])) return fail();
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }
  void expect(std::string_view any_of) {
    if (!next_is(any_of)) {
      fail();
    } else {
      rest_.remove_prefix(1);
    }
  }
  bool next_is(std::string_view any_of) const {
    return !rest_.empty() && any_of.find(rest_.front()) != std::string_view::npos;
  }
  char take() {
    const char c = rest_.empty() ? '\0' : rest_.front();
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }
  // Reads the digits after the point. Digits finer than a microsecond are cut off.
  microseconds fraction() {
    if (rest_.empty() || !digit(rest_.front())) fail();
    microseconds::rep value = 0;
    microseconds::rep unit = 100'000;
    for (; !rest_.empty() && digit(rest_.front()); rest_.remove_prefix(1), unit /= 10) {
      value += unit * (rest_.front() - '0');
    }
    return microseconds(value);
  }
  bool ended_well() const { return good_ && rest_.empty(); }

 private:
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  int fail() {
    good_ = false;
    return 0;
  }
  std::string_view rest_;
  bool good_ = true;
};

std::chrono::minutes scan_zone(Scanner& scanner) {
  const char sign = scanner.take();
  if (sign == 'Z' || sign == 'z') return std::chrono::minutes(0);
  const int hours = scanner.number(2);
  scanner.expect(":");
  const int minutes = scanner.number(2);
  const std::chrono::minutes offset(hours * 60 + minutes);
  return sign == '-' ? -offset : offset;
}

struct Civil {
  int year;
  unsigned month, day;
  std::int64_t hour, minute, second, micros;
};

Civil civil(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto of_day = (time - day).count();
  return {static_cast<int>(date.year()),
          static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day()),
          of_day / 3'600'000'000,
          of_day / 60'000'000 % 60,
          of_day / 1'000'000 % 60,
          of_day % 1'000'000};
}

std::optional<WallTime> scan_time(std::string_view text) {
  Scanner scanner(text);
  const int year = scanner.number(4);
  scanner.expect("-");
  const auto month = static_cast<unsigned>(scanner.number(2));
  scanner.expect("-");
  const auto day = static_cast<unsigned>(scanner.number(2));
  scanner.expect("Tt");
  const int hour = scanner.number(2);
  scanner.expect(":");
  const int minute = scanner.number(2);
  scanner.expect(":");
  const int second = scanner.number(2);
  microseconds fraction(0);
  if (scanner.next_is(".")) {
    scanner.take();
    fraction = scanner.fraction();
  }
  if (!scanner.next_is("Zz+-")) return std::nullopt;
  const auto zone = scan_zone(scanner);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  // Second 60 is a leap second: it is read as the first second of the next minute.
  if (!scanner.ended_well() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const WallTime time = WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
                        std::chrono::minutes(minute) + std::chrono::seconds(second) + fraction - zone;
  // The offset of the zone can lead out of the years that RFC 3339 can write.
  const auto written = civil(time).year;
  if (written < 0 || written > 9999) return std::nullopt;
  return time;
}

// A Duration can hold the difference of any two times in this range.
constexpr WallTime earliest{std::chrono::sys_days(std::chrono::year(1900) / 1 / 1)};
constexpr WallTime latest{std::chrono::sys_days(std::chrono::year(2190) / 1 / 1)};

}  // namespace

Result<WallTime> parse_time(std::string_view text) {
  const auto time = scan_time(text);
  if (!time) return Error(Errc::decode, fmt::format("'{}' is not a time in RFC 3339", text));
  return std::clamp(*time, earliest, latest);
}

std::string format_time(WallTime time) {
  const auto c = civil(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", c.year, c.month, c.day, c.hour, c.minute, c.second);
}

std::string format_micro_time(WallTime time) {
  const auto c = civil(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", c.year, c.month, c.day, c.hour, c.minute, c.second,
                     c.micros);
}

}  // namespace haulout::k8s
