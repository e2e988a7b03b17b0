// The kinds of values that options take: how a text sets a field of AgentConfig, and how the documents describe the
// values. Pure.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/config/value_checks.hpp"

namespace haulout::agent {

enum class ValueType {
  text,                  // any text; an empty value means the default
  choice,                // one of a few words
  choices,               // several of a few words, separated by commas
  boolean,               // true, false
  number,                // whole number, not negative
  number_or_percentage,  // 2, 10%
  duration,              // 90s, 1h30m
  list,                  // may be repeated; an empty value is an empty list
  command                // a program and its arguments; an empty value means none
};

// Sets the field. Returns what is wrong with the value, or an empty text if it was set. Appends to a list.
using Setter = std::function<std::string(AgentConfig&, const std::string&)>;

struct Values {
  ValueType type = ValueType::text;
  std::string form{};                // allowed values, as the documents show them
  std::string unit{};                // of a number: what it counts
  std::vector<std::string> words{};  // of `choice` and `choices`: the allowed words
  Setter set{};
};

Values text(std::string AgentConfig::* field, std::string form, ValueCheck check = any_text);
Values list(std::vector<std::string> AgentConfig::* field, std::string form, ValueCheck check);
Values command(std::vector<std::string> AgentConfig::* field);
Values boolean(bool AgentConfig::* field);
Values number(std::uint32_t AgentConfig::* field, std::string unit, std::uint32_t low, std::uint32_t high);
// `word` stands for 0. The digit 0 itself is refused.
Values number_or_word(std::uint32_t AgentConfig::* field, std::string unit, std::string word, std::uint32_t high);
Values number_or_percentage(std::string AgentConfig::* field, std::string unit, ValueCheck check);
// A duration is not negative. Zero is allowed only if it has a meaning for the option.
enum class Zero { allowed, refused };
Values duration(Duration AgentConfig::* field, Zero zero);
Values exit_codes(std::map<int, bool> AgentConfig::* field);

template <class T>
using Words = std::vector<std::pair<std::string, T>>;

template <class T>
std::vector<std::string> names_of(const Words<T>& words) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) names.push_back(name);
  return names;
}

std::string must_be_one_of(const std::vector<std::string>& words);
Values of_words(ValueType type, std::vector<std::string> words, Setter set);
std::vector<std::string> split_at(const std::string& text, char separator);

template <class T>
Values choice(T AgentConfig::* field, Words<T> words) {
  const auto names = names_of(words);
  const auto set = [field, words = std::move(words), names](AgentConfig& config, const std::string& value) {
    for (const auto& [word, meaning] : words)
      if (word == value) {
        config.*field = meaning;
        return std::string();
      }
    return must_be_one_of(names);
  };
  return of_words(ValueType::choice, names, set);
}

template <class T>
Values choices(std::vector<T> AgentConfig::* field, Words<T> words) {
  const auto names = names_of(words);
  const auto set = [field, words = std::move(words), names](AgentConfig& config, const std::string& value) {
    std::vector<T> chosen;
    for (const std::string& part : split_at(value, ',')) {
      const auto found =
          std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.first == part; });
      if (found == words.end())
        return must_be_one_of(names) + "; separate several with commas, the preferred one first";
      if (std::find(chosen.begin(), chosen.end(), found->second) != chosen.end())
        return fmt::format("{} is given twice", part);
      chosen.push_back(found->second);
    }
    config.*field = std::move(chosen);
    return std::string();
  };
  return of_words(ValueType::choices, names, set);
}

}  // namespace haulout::agent
