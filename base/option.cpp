#include "base/option.hpp"

#include <charconv>

namespace haulout {

std::string read_boolean(const std::string& text, bool& value) {
  const auto parsed = parse_bool(text);
  if (!parsed) return "it must be true or false";
  value = *parsed;
  return {};
}

namespace {

enum class Number { good, outside, none };

Number number_in(const std::string& text, std::int64_t low, std::int64_t high, std::int64_t& value) {
  // parse_number() is not used, because a number that is too large for 64 bits has a message of its own.
  const char* end = text.data() + text.size();
  std::int64_t read = 0;
  const auto [stop, failure] = std::from_chars(text.data(), end, read);
  if (failure == std::errc::result_out_of_range) return Number::outside;
  if (failure != std::errc() || stop != end) return Number::none;
  if (read < low || read > high) return Number::outside;
  value = read;
  return Number::good;
}

}  // namespace

std::string read_number(const std::string& text, std::int64_t low, std::int64_t high, std::int64_t& value) {
  switch (number_in(text, low, high, value)) {
    case Number::good: return {};
    case Number::outside: return fmt::format("it must be from {} to {}", low, high);
    case Number::none: return fmt::format("it must be a whole number from {} to {}", low, high);
  }
  return {};
}

std::string read_integer(const std::string& text, std::int64_t low, std::int64_t high, std::int64_t& value) {
  if (number_in(text, low, high, value) == Number::none) return "it is not a whole number";
  return read_number(text, low, high, value);
}

std::string read_duration(const std::string& text, Zero zero, Duration& value) {
  const auto parsed = parse_duration(text);
  if (!parsed) return parsed.error().message();
  if (*parsed < Duration::zero()) return "it must not be negative";
  if (*parsed == Duration::zero() && zero == Zero::refused) return "it must be longer than 0";
  value = *parsed;
  return {};
}

std::string written_duration(Duration duration) {
  using std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
  if (duration < Duration::zero()) return "-" + written_duration(-duration);
  if (duration == Duration::zero()) return "0s";
  std::string text;
  const auto take = [&](Duration unit, std::string_view name) {
    if (duration >= unit) text += fmt::format("{}{}", duration / unit, name);
    duration %= unit;
  };
  take(hours(1), "h");
  take(minutes(1), "m");
  take(seconds(1), "s");
  if (duration != Duration::zero()) text += fmt::format("{}ns", std::chrono::nanoseconds(duration).count());
  return text;
}

std::string must_be_one_of(const std::vector<std::string>& words) {
  return "it must be one of " + joined(words, ", ");
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  for (;;) {
    const auto end = rest.find(separator);
    std::string_view part = rest.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    if (end == std::string_view::npos) return parts;
    rest.remove_prefix(end + 1);
  }
}

std::string plain_meaning(std::string meaning) {
  std::erase(meaning, '`');
  for (std::size_t middle = meaning.find("]("); middle != std::string::npos; middle = meaning.find("](", middle)) {
    const std::size_t begin = meaning.rfind('[', middle);
    const std::size_t end = meaning.find(')', middle);
    if (begin == std::string::npos || end == std::string::npos) return meaning;
    const std::string target = meaning.substr(middle + 2, end - middle - 2);
    meaning.replace(begin, end - begin + 1, "docs/" + target);
    middle = begin;
  }
  return meaning;
}

}  // namespace haulout
