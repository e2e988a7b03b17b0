// A row of a table of options (OptionOf): name, values and meaning. A function for each kind of values (text(),
// number(), duration(), …) defines how a string is parsed into a field of the options struct `Target`, how the field is
// formatted as a string, and how the documentation describes the allowed values. The default of an option is not part
// of its row: it is the string that `Values::show` returns for a default-constructed Target. Pure.
//
// Every function that sets or checks a value returns an error message that says how to write the value, or an empty
// string on success.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout {

enum class ValueType {
  text,                  // any text; an empty value means the default
  choice,                // one of a few words
  choices,               // several of a few words, separated by commas
  boolean,               // true, false
  number,                // whole number
  number_or_percentage,  // 2, 10%
  duration,              // 90s, 1h30m
  list,                  // may be repeated; an empty value is an empty list
  command                // a program and its arguments; an empty value means none
};

template <class Target>
struct Values {
  ValueType type = ValueType::text;
  std::string form{};                // allowed values, for the documentation
  std::string unit{};                // unit of a number, for the documentation: nodes, reboots
  std::vector<std::string> words{};  // allowed words of `choice`, `choices` and number_or_word()
  // Parses the string and sets the field. If the field is a list, appends to it. If it returns an error message, the
  // field is unchanged.
  std::function<std::string(Target&, const std::string&)> set{};
  // Returns the value of the field in the syntax that `set` parses; empty if the field has no value.
  std::function<std::string(const Target&)> show{};
};

template <class Target>
struct OptionOf {
  std::string name;  // without --
  Values<Target> values;
  std::string meaning;  // sentences in Markdown; plain_meaning() is for a terminal
  char letter = 0;      // short form, for example 'v' for -v; 0 if there is none
};

// Converts an option of `Inner` to the option of a struct that has an `Inner` as its member `inner`.
template <class Outer, class Inner>
OptionOf<Outer> lifted(OptionOf<Inner> option, Inner Outer::* inner) {
  auto set = [inner, set = std::move(option.values.set)](Outer& outer, const std::string& text) {
    return set(outer.*inner, text);
  };
  auto show = [inner, show = std::move(option.values.show)](const Outer& outer) { return show(outer.*inner); };
  Values<Outer> values{option.values.type,
                       std::move(option.values.form),
                       std::move(option.values.unit),
                       std::move(option.values.words),
                       std::move(set),
                       std::move(show)};
  return {std::move(option.name), std::move(values), std::move(option.meaning), option.letter};
}

// Access to a value of type T in `Target`: a member, a member of a member, or a pair of functions.
template <class Target, class T>
struct Field {
  template <class Member>
  Field(Member Target::* member)  // NOLINT(google-explicit-constructor): a row of a table names the member alone
      : get([member](const Target& target) { return static_cast<T>(target.*member); }),
        set([member](Target& target, T value) { target.*member = static_cast<Member>(std::move(value)); }) {}
  template <class Inner, class Member>
  Field(Inner Target::* inner, Member Inner::* member)
      : get([=](const Target& target) { return static_cast<T>((target.*inner).*member); }),
        set([=](Target& target, T value) { (target.*inner).*member = static_cast<Member>(std::move(value)); }) {}
  Field(std::function<T(const Target&)> getter, std::function<void(Target&, T)> setter)
      : get(std::move(getter)), set(std::move(setter)) {}

  std::function<T(const Target&)> get;
  std::function<void(Target&, T)> set;
};

using ValueCheck = std::string (*)(const std::string&);

inline std::string any_text(const std::string&) {
  return {};
}

template <class T>
using Words = std::vector<std::pair<std::string, T>>;

std::string read_boolean(const std::string& text, bool& value);
// Parses a whole number from `low` to `high`. Every error message states that range.
std::string read_number(const std::string& text, std::int64_t low, std::int64_t high, std::int64_t& value);
// Does the same for kubectl's flags, whose ranges are wide: the error message states the range only for a number
// outside of it.
std::string read_integer(const std::string& text, std::int64_t low, std::int64_t high, std::int64_t& value);
// Parses a duration that is not negative. Zero is `allowed` only if it has a meaning for the option.
enum class Zero { allowed, refused };
std::string read_duration(const std::string& text, Zero zero, Duration& value);
// Returns the duration in the syntax of parse_duration(), in hours, minutes and seconds, without units whose number is
// zero: "5m", "1m30s", "0s". A fraction of a second is in nanoseconds.
std::string written_duration(Duration duration);

std::string must_be_one_of(const std::vector<std::string>& words);
// Splits the text at `separator`, and removes the spaces around each part.
std::vector<std::string> split_at(const std::string& text, char separator);
// Returns the meaning without Markdown: removes backquotes, and replaces links: "[guards](guards.md)" becomes
// "docs/guards.md".
std::string plain_meaning(std::string meaning);

template <class Target>
Values<Target> text(Field<Target, std::string> field, std::string form, ValueCheck check = any_text) {
  auto set = [field, check](Target& target, const std::string& value) {
    std::string wrong = check(value);
    if (wrong.empty()) field.set(target, value);
    return wrong;
  };
  return {ValueType::text, std::move(form), "", {}, std::move(set), field.get};
}

// A list of items. `read` parses a string and returns a Result<Item>; the item is appended. Values::show always returns
// an empty string here, because it is used for defaults only, and every such list is empty by default.
template <class Target, class Item, class Read>
Values<Target> list(std::function<std::vector<Item>&(Target&)> items, std::string form, Read read) {
  auto set = [items, read](Target& target, const std::string& value) -> std::string {
    auto item = read(value);
    if (!item) return item.error().message();
    items(target).push_back(*std::move(item));
    return {};
  };
  return {ValueType::list, std::move(form), "", {}, std::move(set), [](const Target&) { return std::string(); }};
}

// A list of strings that `check` accepts.
template <class Target>
Values<Target> texts(Field<Target, std::vector<std::string>> field, std::string form, ValueCheck check = any_text) {
  auto set = [field, check](Target& target, const std::string& value) {
    std::string wrong = check(value);
    if (!wrong.empty()) return wrong;
    auto all = field.get(target);
    all.push_back(value);
    field.set(target, std::move(all));
    return wrong;
  };
  return {ValueType::list, std::move(form), "", {}, std::move(set), [field](const Target& target) {
            return joined(field.get(target), ";");
          }};
}

template <class Target>
Values<Target> boolean(Field<Target, bool> field) {
  auto set = [field](Target& target, const std::string& text) {
    bool value = false;
    std::string wrong = read_boolean(text, value);
    if (wrong.empty()) field.set(target, value);
    return wrong;
  };
  return {ValueType::boolean, "true, false", "", {}, std::move(set), [field](const Target& target) {
            return std::string(field.get(target) ? "true" : "false");
          }};
}

template <class Target>
Values<Target> number(Field<Target, std::int64_t> field, std::string unit, std::int64_t low, std::int64_t high) {
  auto set = [field, low, high](Target& target, const std::string& text) {
    std::int64_t value = 0;
    std::string wrong = read_number(text, low, high, value);
    if (wrong.empty()) field.set(target, value);
    return wrong;
  };
  return {ValueType::number, fmt::format("{} to {}", low, high),
          std::move(unit),   {},
          std::move(set),    [field](const Target& target) { return std::to_string(field.get(target)); }};
}

// A number with the error messages of read_integer().
template <class Target>
Values<Target> integer(Field<Target, std::int64_t> field, std::string unit, std::int64_t low, std::int64_t high) {
  Values<Target> values = number<Target>(field, std::move(unit), low, high);
  values.set = [field, low, high](Target& target, const std::string& text) {
    std::int64_t value = 0;
    std::string wrong = read_integer(text, low, high, value);
    if (wrong.empty()) field.set(target, value);
    return wrong;
  };
  return values;
}

// A number from 1 to `high`, or `word`, which sets the field to 0. The number 0 itself is refused.
template <class Target>
Values<Target> number_or_word(Field<Target, std::int64_t> field, std::string unit, std::string word,
                              std::int64_t high) {
  Values<Target> values = number<Target>(field, std::move(unit), 1, high);
  values.form += ", " + word;
  values.words = {word};
  values.set = [field, word, set = std::move(values.set)](Target& target, const std::string& text) {
    if (text == word) {
      field.set(target, 0);
      return std::string();
    }
    std::string wrong = set(target, text);
    return wrong.empty() ? wrong : wrong + ", or " + word;
  };
  values.show = [field, word](const Target& target) {
    const std::int64_t value = field.get(target);
    return value == 0 ? word : std::to_string(value);
  };
  return values;
}

template <class Target>
Values<Target> duration(Field<Target, Duration> field, Zero zero) {
  auto set = [field, zero](Target& target, const std::string& text) {
    Duration value{};
    std::string wrong = read_duration(text, zero, value);
    if (wrong.empty()) field.set(target, value);
    return wrong;
  };
  return {ValueType::duration, "duration", "", {}, std::move(set), [field](const Target& target) {
            return written_duration(field.get(target));
          }};
}

template <class T>
std::vector<std::string> names_of(const Words<T>& words) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) names.push_back(name);
  return names;
}

template <class T>
std::string word_for(const Words<T>& words, const T& value) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return word;
  return {};
}

template <class Target, class T>
Values<Target> choice(Field<Target, T> field, Words<T> words) {
  const auto names = names_of(words);
  auto set = [field, words, names](Target& target, const std::string& text) -> std::string {
    for (const auto& [word, meaning] : words)
      if (word == text) {
        field.set(target, meaning);
        return {};
      }
    return must_be_one_of(names);
  };
  auto show = [field, words](const Target& target) { return word_for(words, field.get(target)); };
  return {ValueType::choice, joined(names, ", "), "", names, std::move(set), std::move(show)};
}

template <class Target, class T>
Values<Target> choices(Field<Target, std::vector<T>> field, Words<T> words) {
  const auto names = names_of(words);
  auto set = [field, words, names](Target& target, const std::string& text) -> std::string {
    std::vector<T> chosen;
    for (const std::string& part : split_at(text, ',')) {
      const auto found =
          std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.first == part; });
      if (found == words.end())
        return must_be_one_of(names) + "; separate several with commas, the preferred one first";
      if (std::find(chosen.begin(), chosen.end(), found->second) != chosen.end())
        return fmt::format("{} is given twice", part);
      chosen.push_back(found->second);
    }
    field.set(target, std::move(chosen));
    return {};
  };
  auto show = [field, words](const Target& target) {
    std::vector<std::string> shown;
    for (const T& value : field.get(target)) shown.push_back(word_for(words, value));
    return joined(shown, ",");
  };
  return {ValueType::choices, joined(names, ", "), "", names, std::move(set), std::move(show)};
}

}  // namespace haulout
