#include "agent/config/option_values.hpp"

#include <charconv>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

std::string whole_number(const std::string& value, std::uint32_t low, std::uint32_t high, std::uint32_t& number) {
  const char* end = value.data() + value.size();
  std::uint32_t read = 0;
  const auto [stop, failure] = std::from_chars(value.data(), end, read);
  const bool negative = value.starts_with('-') && value.find_first_not_of("0123456789", 1) == std::string::npos;
  if ((negative && value.size() > 1) || failure == std::errc::result_out_of_range ||
      (failure == std::errc() && stop == end && (read < low || read > high)))
    return fmt::format("it must be from {} to {}", low, high);
  if (failure != std::errc() || stop != end) return fmt::format("it must be a whole number from {} to {}", low, high);
  number = read;
  return {};
}

}  // namespace

Values text(std::string AgentConfig::* field, std::string form, ValueCheck check) {
  const auto set = [field, check](AgentConfig& config, const std::string& value) {
    std::string wrong = check(value);
    if (wrong.empty()) config.*field = value;
    return wrong;
  };
  return {ValueType::text, std::move(form), "", {}, set};
}

Values list(std::vector<std::string> AgentConfig::* field, std::string form, ValueCheck check) {
  const auto set = [field, check](AgentConfig& config, const std::string& value) {
    std::string wrong = check(value);
    if (wrong.empty()) (config.*field).push_back(value);
    return wrong;
  };
  return {ValueType::list, std::move(form), "", {}, set};
}

Values command(std::vector<std::string> AgentConfig::* field) {
  const auto set = [field](AgentConfig& config, const std::string& value) { return split_words(value, config.*field); };
  return {ValueType::command, "command", "", {}, set};
}

Values boolean(bool AgentConfig::* field) {
  const auto set = [field](AgentConfig& config, const std::string& value) -> std::string {
    const auto parsed = parse_bool(value);
    if (!parsed) return "it must be true or false";
    config.*field = *parsed;
    return {};
  };
  return {ValueType::boolean, "true, false", "", {}, set};
}

Values number(std::uint32_t AgentConfig::* field, std::string unit, std::uint32_t low, std::uint32_t high) {
  const auto set = [field, low, high](AgentConfig& config, const std::string& value) {
    return whole_number(value, low, high, config.*field);
  };
  return {ValueType::number, fmt::format("{} to {}", low, high), std::move(unit), {}, set};
}

Values number_or_word(std::uint32_t AgentConfig::* field, std::string unit, std::string word, std::uint32_t high) {
  const auto set = [field, word, high](AgentConfig& config, const std::string& value) {
    if (value == word) {
      config.*field = 0;
      return std::string();
    }
    const std::string wrong = whole_number(value, 1, high, config.*field);
    return wrong.empty() ? wrong : wrong + ", or " + word;
  };
  return {ValueType::number, fmt::format("1 to {}, {}", high, word), std::move(unit), {word}, set};
}

Values number_or_percentage(std::string AgentConfig::* field, std::string unit, ValueCheck check) {
  Values values = text(field, "number, percentage", check);
  values.type = ValueType::number_or_percentage;
  values.unit = std::move(unit);
  return values;
}

Values duration(Duration AgentConfig::* field, Zero zero) {
  const auto set = [field, zero](AgentConfig& config, const std::string& value) -> std::string {
    const auto parsed = parse_duration(value);
    if (!parsed) return parsed.error().message();
    if (*parsed < Duration::zero()) return "it must not be negative";
    if (*parsed == Duration::zero() && zero == Zero::refused) return "it must be longer than 0";
    config.*field = *parsed;
    return {};
  };
  return {ValueType::duration, "duration", "", {}, set};
}

Values exit_codes(std::map<int, bool> AgentConfig::* field) {
  const auto set = [field](AgentConfig& config, const std::string& value) {
    return parse_exit_codes(value, config.*field);
  };
  return {ValueType::text, "code=answer", "", {}, set};
}

std::string must_be_one_of(const std::vector<std::string>& words) {
  return fmt::format("it must be one of {}", fmt::join(words, ", "));
}

Values of_words(ValueType type, std::vector<std::string> words, Setter set) {
  return {type, fmt::format("{}", fmt::join(words, ", ")), "", words, std::move(set)};
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

}  // namespace haulout::agent
