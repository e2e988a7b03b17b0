#include "http/message.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.hpp"

namespace haulout::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<unsigned> month_number(std::string_view name) {
  constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto found = std::find(months.begin(), months.end(), name);
  if (found == months.end()) return std::nullopt;
  return static_cast<unsigned>(found - months.begin()) + 1;
}

// Limits for times from peers. A Duration can hold the difference of any two times in this range.
constexpr std::chrono::sys_seconds earliest{std::chrono::sys_days(std::chrono::year(1900) / 1 / 1)};
constexpr std::chrono::sys_seconds latest{std::chrono::sys_days(std::chrono::year(2190) / 1 / 1)};

// Parses the three date formats that a recipient must accept (RFC 9110 5.6.7). Skips the name of the day, which is
// redundant.
std::optional<std::chrono::sys_seconds> parse_http_date(const std::string& text) {
  int day = 0;
  int year = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int end = 0;
  std::array<char, 4> month{};
  const auto complete = [&] { return end > 0 && static_cast<std::size_t>(end) == text.size(); };
  std::sscanf(text.c_str(), "%*3[A-Za-z], %2d %3s %4d %2d:%2d:%2d GMT%n", &day, month.data(), &year, &hour, &minute,
              &second, &end);
  if (!complete()) {
    end = 0;
    std::sscanf(text.c_str(), "%*[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &day, month.data(), &year, &hour,
                &minute, &second, &end);
    if (complete()) year += year < 70 ? 2000 : 1900;
  }
  if (!complete()) {
    end = 0;
    std::sscanf(text.c_str(), "%*3[A-Za-z] %3s %2d %2d:%2d:%2d %4d%n", month.data(), &day, &hour, &minute, &second,
                &year, &end);
  }
  const auto number = month_number(month.data());
  if (!complete() || !number) return std::nullopt;
  const auto date =
      std::chrono::year(year) / std::chrono::month(*number) / std::chrono::day(static_cast<unsigned>(day));
  // Second 60 is valid: a leap second.
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
    return std::nullopt;
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                                        std::chrono::minutes(minute) + std::chrono::seconds(second);
  return std::clamp(time, earliest, latest);
}

}  // namespace

std::optional<std::string_view> Headers::find(std::string_view name) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return same_name(field.name, name); });
  if (found == fields_.end()) return std::nullopt;
  return found->value;
}

void Headers::add(std::string_view name, std::string_view value) {
  fields_.push_back({std::string(name), std::string(value)});
}

void Headers::set(std::string_view name, std::string_view value) {
  // Makes the new field first, because `value` may point into a field that is erased.
  Field field{std::string(name), std::string(value)};
  std::erase_if(fields_, [&](const Field& old) { return same_name(old.name, field.name); });
  fields_.push_back(std::move(field));
}

std::optional<std::chrono::sys_seconds> date(const Headers& headers) {
  const auto value = headers.find("Date");
  return value ? parse_http_date(std::string(*value)) : std::nullopt;
}

std::optional<std::chrono::milliseconds> retry_after(const Headers& headers, std::chrono::sys_seconds date_now) {
  const auto value = headers.find("Retry-After");
  if (!value || value->empty()) return std::nullopt;
  if (value->find_first_not_of("0123456789") == std::string_view::npos) {
    // Numbers that are larger than ten years in seconds count as ten years.
    constexpr std::chrono::seconds longest = std::chrono::days(3650);
    const auto seconds = parse_number<std::uint64_t>(*value);
    if (!seconds || *seconds > static_cast<std::uint64_t>(longest.count())) return longest;
    return std::chrono::seconds(*seconds);
  }
  const auto date = parse_http_date(std::string(*value));
  if (!date) return std::nullopt;
  return std::max(std::chrono::milliseconds::zero(), std::chrono::milliseconds(*date - date_now));
}

}  // namespace haulout::http
