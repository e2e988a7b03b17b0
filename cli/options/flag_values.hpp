// Makes the function Flag::apply of a flag, one maker per type of value (Boolean, text, integer, duration, …). The
// function parses and checks the text of the flag and stores the value in the Settings; it returns an error message if
// the text is invalid. Pure.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/options/flags.hpp"

namespace haulout::cli::flag_values {

using Apply = std::function<std::string(Settings&, const std::string&)>;

inline Apply boolean(std::function<void(Settings&, bool)> set) {
  return [set = std::move(set)](Settings& settings, const std::string& text) -> std::string {
    const auto value = parse_bool(text);
    if (!value) return "it must be true or false";
    set(settings, *value);
    return {};
  };
}

inline Apply text(std::function<std::string&(Settings&)> field) {
  return [field = std::move(field)](Settings& settings, const std::string& value) -> std::string {
    field(settings) = value;
    return {};
  };
}

inline Apply integer(std::int64_t low, std::int64_t high, std::function<void(Settings&, std::int64_t)> set) {
  return [low, high, set = std::move(set)](Settings& settings, const std::string& value) -> std::string {
    std::int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, failure] = std::from_chars(value.data(), end, number);
    if (failure == std::errc::result_out_of_range || (failure == std::errc() && (number < low || number > high)))
      return fmt::format("it must be from {} to {}", low, high);
    if (failure != std::errc() || stop != end) return "it is not a whole number";
    set(settings, number);
    return {};
  };
}

inline Apply any_duration(std::function<void(Settings&, Duration)> set) {
  return [set = std::move(set)](Settings& settings, const std::string& value) -> std::string {
    const auto parsed = parse_duration(value);
    if (!parsed) return parsed.error().message();
    set(settings, *parsed);
    return {};
  };
}

inline Apply duration(std::function<void(Settings&, Duration)> set) {
  return [apply = any_duration(std::move(set))](Settings& settings, const std::string& value) -> std::string {
    const auto parsed = parse_duration(value);
    if (parsed && *parsed < Duration::zero()) return "it must not be negative";
    return apply(settings, value);
  };
}

// Like duration(), which refuses negative durations, but also accepts a number without a unit, which means seconds.
inline Apply duration_or_seconds(std::function<void(Settings&, Duration)> set) {
  return [apply = duration(std::move(set))](Settings& settings, const std::string& value) {
    const bool bare = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    return apply(settings, bare ? value + "s" : value);
  };
}

template <class T>
Apply one_of(std::vector<std::pair<std::string, T>> words, std::function<void(Settings&, T)> set) {
  return [words = std::move(words), set = std::move(set)](Settings& settings, const std::string& value) -> std::string {
    std::string allowed;
    for (const auto& [word, meaning] : words) {
      if (word == value) {
        set(settings, meaning);
        return {};
      }
      allowed += (allowed.empty() ? "" : ", ") + word;
    }
    return "it must be one of " + allowed;
  };
}

// Returns the flag -l, --selector, which selects nodes by label.
Flag selector_flag();

}  // namespace haulout::cli::flag_values
