#include "agent/gates/cron.hpp"

#include <fmt/format.h>
#include <array>

#include "base/text.hpp"

namespace haulout::agent {
namespace {

using spelling::is_blank;
using spelling::month_named;
using spelling::small_number;
using spelling::weekday_named;

using Names = std::optional<unsigned> (*)(std::string_view);

struct Field {
  std::string_view name;
  unsigned first;
  unsigned last;
  Names named;
};

constexpr std::array<Field, 5> fields_of_cron = {
    Field{"minute", 0, 59, nullptr}, Field{"hour", 0, 23, nullptr}, Field{"day of month", 1, 31, nullptr},
    Field{"month", 1, 12, month_named}, Field{"day of week", 0, 7, weekday_named}};
constexpr unsigned sunday_again = 7;

using Values = std::bitset<60>;

struct Word {
  std::string_view text;
  std::size_t at;  // position in the whole text
};

std::vector<Word> words_of(std::string_view text, std::size_t at) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && !is_blank(text[end])) ++end;
    if (end > i) words.push_back({text.substr(i, end - i), at + i});
    i = end + 1;
  }
  return words;
}

std::string allowed(const Field& field) {
  return fmt::format("{} takes {} to {}{}, *, a-b, */n and lists with commas", field.name, field.first, field.last,
                     field.named == nullptr ? "" : ", names of three letters");
}

// One item of a list. It covers the values from `first` to `last` in steps of `step`.
struct Item {
  unsigned first;
  unsigned last;
  unsigned step;
};

class FieldParser {
 public:
  FieldParser(const Grammar& grammar, const Field& field, Word word) : grammar_(grammar), field_(field), word_(word) {}

  Result<Values> parse() const {
    Values values;
    std::size_t begin = 0;
    while (begin <= word_.text.size()) {
      const std::size_t end = std::min(word_.text.find(',', begin), word_.text.size());
      auto item = parse_item({word_.text.substr(begin, end - begin), word_.at + begin});
      if (!item) return std::move(item).error();
      for (unsigned value = item->first; value <= item->last; value += item->step) values.set(value);
      begin = end + 1;
    }
    return values;
  }

 private:
  Error wrong(std::size_t at, std::string_view cause) const { return grammar_.wrong(at, cause, allowed(field_)); }

  Result<Item> parse_item(Word item) const {
    const std::size_t slash = item.text.find('/');
    const std::string_view range = item.text.substr(0, slash);
    const std::size_t dash = range.find('-');
    Item found{field_.first, field_.last, 1};
    if (range != "*") {
      auto first = value({range.substr(0, dash), item.at});
      if (!first) return std::move(first).error();
      found.first = found.last = *first;
    }
    if (dash != std::string_view::npos) {
      auto last = value({range.substr(dash + 1), item.at + dash + 1});
      if (!last) return std::move(last).error();
      const bool to_sunday = field_.last == sunday_again && *last == 0 && found.first > 0;
      found.last = to_sunday ? sunday_again : *last;
      if (found.last < found.first) return wrong(item.at, "the range is reversed; write it as a list");
    }
    if (slash == std::string_view::npos) return found;
    const std::size_t step_at = item.at + slash + 1;
    if (range != "*" && dash == std::string_view::npos) return wrong(step_at, "a step needs a range or * before it");
    const auto step = small_number(item.text.substr(slash + 1));
    if (!step || *step == 0) return wrong(step_at, "a step is a number from 1 on");
    found.step = *step;
    return found;
  }

  Result<unsigned> value(Word word) const {
    if (word.text.empty()) return wrong(word.at, fmt::format("a value of {} is missing", field_.name));
    if (const auto number = small_number(word.text)) {
      if (*number >= field_.first && *number <= field_.last) return *number;
      return wrong(word.at, fmt::format("{} is not a {}", *number, field_.name));
    }
    if (field_.named != nullptr) {
      if (const auto named = field_.named(word.text)) return *named;
    }
    return wrong(word.at, fmt::format("\"{}\" is not a {}", printable(word.text), field_.name));
  }

  const Grammar& grammar_;
  const Field& field_;
  Word word_;
};

template <std::size_t Size>
std::bitset<Size> narrowed(const Values& values) {
  std::bitset<Size> result;
  for (std::size_t i = 0; i < Size; ++i) result[i] = values[i];
  return result;
}

}  // namespace

Result<CronStarts> parse_cron(const Grammar& grammar, std::string_view fields, std::size_t at) {
  const std::vector<Word> words = words_of(fields, at);
  if (words.size() != fields_of_cron.size()) {
    return grammar.wrong(at, fmt::format("cron() needs five fields, but there are {}", words.size()),
                         "write minute, hour, day of month, month and day of week, without seconds and years");
  }
  std::array<Values, 5> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto parsed = FieldParser(grammar, fields_of_cron[i], words[i]).parse();
    if (!parsed) return std::move(parsed).error();
    values[i] = *parsed;
  }
  if (values[4][sunday_again]) values[4].set(0);
  CronStarts starts;
  starts.days.days_of_month = narrowed<32>(values[2]);
  starts.days.months = narrowed<13>(values[3]);
  starts.days.weekdays = narrowed<7>(values[4]);
  starts.days.either = !words[2].text.starts_with('*') && !words[4].text.starts_with('*');
  if (!starts.days.possible()) {
    return grammar.wrong(words[2].at, "none of these months has such a day", "correct day of month or month");
  }
  for (unsigned minute = 0; minute < 24 * 60; ++minute) {
    if (values[1][minute / 60] && values[0][minute % 60]) starts.times.emplace_back(minute);
  }
  return starts;
}

}  // namespace haulout::agent
