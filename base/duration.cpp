#include "base/duration.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>

namespace haulout {
namespace {

std::optional<std::int64_t> nanoseconds_of(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "\u00b5s" || unit == "\u03bcs") return 1'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  if (unit == "m") return 60'000'000'000;
  if (unit == "h") return 3'600'000'000'000;
  return std::nullopt;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error wrong(std::string what) {
  return Error(Errc::invalid, std::move(what) + "; write a duration like 90s, 5m or 1h30m");
}

Error too_long() {
  return wrong("it is longer than 292 years");
}

// Parses the digits at the front of `text`, and removes them. Returns 0 if there are none, and nullopt on overflow.
std::optional<std::int64_t> take_integer(std::string_view& text) {
  std::int64_t value = 0;
  while (!text.empty() && is_digit(text.front())) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, std::int64_t{text.front() - '0'}, &value)) return std::nullopt;
    text.remove_prefix(1);
  }
  return value;
}

// Parses the digits after a decimal point, and removes them. Returns a number in [0, 1). Digits beyond the precision of
// a double are ignored.
double take_fraction(std::string_view& text) {
  double value = 0;
  double scale = 0.1;
  while (!text.empty() && is_digit(text.front())) {
    value += (text.front() - '0') * scale;
    scale /= 10;
    text.remove_prefix(1);
  }
  return value;
}

// Parses one number with its unit, such as "1.5h", at the front of `rest`, and removes it. Returns nanoseconds.
Result<std::int64_t> take_term(std::string_view& rest) {
  const std::size_t before = rest.size();
  const auto whole = take_integer(rest);
  if (!whole) return too_long();
  bool digits = rest.size() < before;
  double fraction = 0;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    const std::size_t point = rest.size();
    fraction = take_fraction(rest);
    digits = digits || rest.size() < point;
  }
  if (!digits) return wrong("a number is missing");
  std::size_t end = 0;
  while (end < rest.size() && !is_digit(rest[end]) && rest[end] != '.') ++end;
  const std::string_view unit = rest.substr(0, end);
  rest.remove_prefix(end);
  if (unit.empty()) return wrong("the unit is missing");
  const auto nanoseconds = nanoseconds_of(unit);
  if (!nanoseconds) return wrong(fmt::format("unknown unit \"{}\"", unit));
  std::int64_t total = 0;
  if (__builtin_mul_overflow(*whole, *nanoseconds, &total)) return too_long();
  const auto part = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(*nanoseconds)));
  if (__builtin_add_overflow(total, part, &total)) return too_long();
  return total;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration::zero();
  if (rest.empty()) return wrong("no duration is given");
  std::int64_t total = 0;
  while (!rest.empty()) {
    auto term = take_term(rest);
    if (!term) return std::move(term).error();
    if (__builtin_add_overflow(total, *term, &total)) return too_long();
  }
  return Duration(negative ? -total : total);
}

std::string format_duration(Duration duration) {
  using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::seconds;
  if (duration < Duration::zero()) return "-" + format_duration(-duration);
  if (duration < seconds(1)) return fmt::format("{}ms", duration_cast<milliseconds>(duration).count());
  const auto total = duration_cast<seconds>(duration).count();
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  const auto hours = total / 3600;
  if (hours < 72) return fmt::format("{}h{:02}m", hours, total / 60 % 60);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

std::string format_whole_seconds(Duration duration) {
  return format_duration(std::chrono::round<std::chrono::seconds>(duration));
}

}  // namespace haulout
