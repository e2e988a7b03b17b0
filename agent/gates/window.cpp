#include "agent/gates/window.hpp"

#include <fmt/format.h>
#include <array>

#include "base/ascii.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Returns the value of at most six digits. Returns nothing if the text is empty, longer, or has other characters.
std::optional<unsigned> small_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 6 || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  unsigned value = 0;
  for (const char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

template <std::size_t Count>
std::optional<unsigned> named(const std::array<std::string_view, Count>& names, std::string_view name) {
  const std::string wanted = lower_case(name);
  for (std::size_t i = 0; i < Count; ++i) {
    if (wanted == names[i] || wanted == names[i].substr(0, 3)) return static_cast<unsigned>(i);
  }
  return std::nullopt;
}

// Returns the number of a weekday; Sunday is 0. `name` is its first three letters or the whole name, in upper or lower
// case.
std::optional<unsigned> weekday_named(std::string_view name) {
  static constexpr std::array<std::string_view, 7> names = {"sunday",   "monday", "tuesday", "wednesday",
                                                            "thursday", "friday", "saturday"};
  return named(names, name);
}

// Returns the number of a month; January is 1. Names as for weekdays.
std::optional<unsigned> month_named(std::string_view name) {
  static constexpr std::array<std::string_view, 12> names = {"january",   "february", "march",    "april",
                                                             "may",       "june",     "july",     "august",
                                                             "september", "october",  "november", "december"};
  const auto index = named(names, name);
  return index ? std::optional(*index + 1) : std::nullopt;
}

// Reads the text of one window or black-out piece by piece. Keeps the position, so that every error message can name
// it. The caller adds the name of the option and the text. Borrows the text.
class Grammar {
 public:
  explicit Grammar(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  // Returns the next character without reading it; '\0' at the end.
  char next() const { return done() ? '\0' : text_[at_]; }
  bool take(char c);
  void skip_blanks();
  std::string_view digits();
  std::string_view letters();
  // Reads and returns the text up to the next blank, or to the end.
  std::string_view word();
  // Returns the text before `stop` and skips it and `stop`. If `stop` does not follow, returns nothing and skips
  // nothing.
  std::optional<std::string_view> until(char stop);

  // Returns Errc::invalid with the message "character <at + 1>: <cause>; <way_out>". `way_out` is the remedy.
  Error wrong(std::size_t at, std::string_view cause, std::string_view way_out) const;

 private:
  template <class Predicate>
  std::string_view while_true(Predicate holds);

  std::string_view text_;
  std::size_t at_ = 0;
};

template <class Predicate>
std::string_view Grammar::while_true(Predicate holds) {
  const std::size_t begin = at_;
  while (!done() && holds(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

bool Grammar::take(char c) {
  if (done() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void Grammar::skip_blanks() {
  while_true(is_blank);
}

std::string_view Grammar::digits() {
  return while_true(is_digit);
}

std::string_view Grammar::letters() {
  return while_true(is_letter);
}

std::string_view Grammar::word() {
  return while_true([](char c) { return !is_blank(c); });
}

std::optional<std::string_view> Grammar::until(char stop) {
  const std::size_t end = text_.find(stop, at_);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view found = text_.substr(at_, end - at_);
  at_ = end + 1;
  return found;
}

Error Grammar::wrong(std::size_t at, std::string_view cause, std::string_view way_out) const {
  return Error(Errc::invalid, fmt::format("character {}: {}; {}", at + 1, cause, way_out));
}

// The days and times of day at which a window starts, from the five fields of cron.
struct CronStarts {
  Days days;
  std::vector<std::chrono::minutes> times;  // times of day, ascending, at least one
};

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
// In cron both 0 and 7 mean Sunday.
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
      return wrong(word.at, fmt::format("{} is not a valid {}", *number, field_.name));
    }
    if (field_.named != nullptr) {
      if (const auto named = field_.named(word.text)) return *named;
    }
    return wrong(word.at, fmt::format("\"{}\" is not a valid {}", printable(word.text), field_.name));
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

// Parses `fields`, the text between the brackets. `at` is its position in the text of `grammar`, for error messages.
// Fails with Errc::invalid if a field is wrong or no day matches.
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

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t longest_text = 500;  // characters; a longer text is a mistake
constexpr minutes shortest_length(1);
constexpr days longest_length(31);
constexpr UntilClock to_midnight{days(1)};

constexpr std::string_view write_days =
    "write days like Mon or Mon-Fri or \"Sat,Sun\" or \"2nd Tue\" or 2026-12-24, or only a time for every day";
constexpr std::string_view write_start =
    "write it like 22:00+4h, Sat,Sun 01:00+6h Europe/Berlin or cron(0 2 * * 1-5)+3h";
constexpr std::string_view write_dates = "write dates like 2026-12-24 or 2026-12-20..2027-01-03";

struct Starts {
  Days days;
  std::vector<minutes> times;
};

// Converts "1st" … "5th" and "last" to the index of the bit in Days::nth.
std::optional<std::size_t> ordinal(std::string_view word) {
  static constexpr std::string_view ordinals[] = {"", "1st", "2nd", "3rd", "4th", "5th", "last"};
  for (std::size_t i = 1; i < std::size(ordinals); ++i) {
    if (lower_case(word) == ordinals[i]) return i;
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view thing, std::string_view text) : thing_(thing), text_(text), grammar_(text) {}

  Result<Recurrence> recurrence() {
    auto starts = parse_starts();
    if (!starts) return std::move(starts).error();
    auto length = parse_length(starts->times);
    if (!length) return std::move(length).error();
    auto zone = parse_zone();
    if (!zone) return std::move(zone).error();
    return Recurrence(starts->days, std::move(starts->times), *length, *zone);
  }

  // Returns true if the text begins with dates, and no time of day follows.
  bool is_dates_alone() {
    Parser ahead = *this;
    if (!ahead.at_date() || !ahead.parse_dates()) return at_date();
    ahead.grammar_.skip_blanks();
    return !is_digit(ahead.grammar_.next());
  }

  Result<Blackout> dates() {
    auto days = parse_dates();
    if (!days) return std::move(days).error();
    auto zone = parse_zone();
    if (!zone) return std::move(zone).error();
    return Blackout{std::string(text_), *zone,
                    Interval{zone->instant(days->first), zone->instant(days->second + std::chrono::days(1))}};
  }

  Result<> readable() {
    if (text_.size() > longest_text)
      return grammar_.wrong(
          longest_text, fmt::format("the text of a {} must be shorter, at most {} characters", thing_, longest_text),
          write_start);
    grammar_.skip_blanks();
    if (grammar_.done()) return grammar_.wrong(grammar_.at(), "it is empty", write_start);
    return {};
  }

 private:
  Result<Starts> parse_starts();
  Result<Starts> parse_cron_starts();
  Result<Days> parse_days();
  Result<std::bitset<7>> parse_ordinals();
  Result<std::bitset<7>> parse_weekdays();
  Result<unsigned> parse_weekday();
  Result<minutes> parse_clock(bool as_end);
  Result<Length> parse_length(const std::vector<minutes>& starts);
  Result<Length> parse_elapsed();
  Result<Zone> parse_zone();
  Result<std::pair<std::chrono::local_days, std::chrono::local_days>> parse_dates();
  Result<std::chrono::local_days> parse_date();
  bool at_date() const;
  bool at_clock() const;
  bool at_ordinal() const;

  std::string_view thing_;
  std::string_view text_;
  Grammar grammar_;
};

bool Parser::at_date() const {
  Grammar ahead = grammar_;
  ahead.skip_blanks();
  return ahead.digits().size() == 4 && ahead.take('-');
}

bool Parser::at_clock() const {
  Grammar ahead = grammar_;
  return !ahead.digits().empty() && !is_letter(ahead.next());
}

bool Parser::at_ordinal() const {
  Grammar ahead = grammar_;
  return is_digit(ahead.next()) || lower_case(ahead.letters()) == "last";
}

Result<Starts> Parser::parse_starts() {
  grammar_.skip_blanks();
  if (Grammar ahead = grammar_; lower_case(ahead.letters()) == "cron") return parse_cron_starts();
  Starts starts;
  if (at_date() || !at_clock()) {
    auto on = parse_days();
    if (!on) return std::move(on).error();
    starts.days = *on;
    grammar_.skip_blanks();
  }
  auto time = parse_clock(false);
  if (!time) return std::move(time).error();
  starts.times = {*time};
  return starts;
}

Result<Starts> Parser::parse_cron_starts() {
  constexpr std::string_view write_cron = "write it like cron(0 2 * * 1-5)+3h";
  grammar_.letters();
  if (!grammar_.take('(')) return grammar_.wrong(grammar_.at(), "a bracket must follow cron", write_cron);
  const std::size_t begin = grammar_.at();
  const auto fields = grammar_.until(')');
  if (!fields) return grammar_.wrong(begin, "the bracket is not closed", write_cron);
  auto cron = parse_cron(grammar_, *fields, begin);
  if (!cron) return std::move(cron).error();
  return Starts{cron->days, std::move(cron->times)};
}

Result<Days> Parser::parse_days() {
  Days found;
  if (at_date()) {
    auto dates = parse_dates();
    if (!dates) return std::move(dates).error();
    found.between = *dates;
    return found;
  }
  if (at_ordinal()) {
    auto nth = parse_ordinals();
    if (!nth) return std::move(nth).error();
    found.nth = *nth;
    grammar_.skip_blanks();
  }
  auto weekdays = parse_weekdays();
  if (!weekdays) return std::move(weekdays).error();
  found.weekdays = *weekdays;
  return found;
}

Result<std::bitset<7>> Parser::parse_ordinals() {
  std::bitset<7> found;
  do {
    grammar_.skip_blanks();
    const std::size_t begin = grammar_.at();
    std::string word(grammar_.digits());
    word += grammar_.letters();
    const auto which = ordinal(word);
    if (!which) {
      return grammar_.wrong(begin, fmt::format("\"{}\" is not an ordinal", word),
                            "write 1st, 2nd, 3rd, 4th, 5th or last before the weekday, or a time like 22:00");
    }
    found.set(*which);
  } while (grammar_.take(','));
  return found;
}

Result<std::bitset<7>> Parser::parse_weekdays() {
  std::bitset<7> found;
  do {
    grammar_.skip_blanks();
    auto first = parse_weekday();
    if (!first) return std::move(first).error();
    unsigned last = *first;
    if (grammar_.take('-')) {
      auto end = parse_weekday();
      if (!end) return std::move(end).error();
      last = *end;
    }
    for (unsigned day = *first;; day = (day + 1) % 7) {
      found.set(day);
      if (day == last) break;
    }
  } while (grammar_.take(','));
  return found;
}

Result<unsigned> Parser::parse_weekday() {
  const std::size_t begin = grammar_.at();
  const std::string_view name = grammar_.letters();
  if (name.empty()) return grammar_.wrong(begin, "a day or a time is missing", write_start);
  const auto day = weekday_named(name);
  if (!day) return grammar_.wrong(begin, fmt::format("unknown day \"{}\"", name), write_days);
  return *day;
}

Result<minutes> Parser::parse_clock(bool as_end) {
  const std::string_view write_clock =
      as_end ? "write hours and minutes, from 00:00 to 24:00" : "write hours and minutes, from 00:00 to 23:59";
  const std::size_t begin = grammar_.at();
  const auto hour = grammar_.digits();
  if (hour.empty()) return grammar_.wrong(begin, "a time is missing", write_clock);
  if (!grammar_.take(':')) return grammar_.wrong(grammar_.at(), "a colon must follow the hours", write_clock);
  const auto minute = grammar_.digits();
  const char after = grammar_.next();
  const bool ends = grammar_.done() || is_blank(after) || after == '+' || after == '-';
  if (hour.size() > 2 || minute.size() != 2 || !ends)
    return grammar_.wrong(begin, "this is not a time of day", write_clock);
  const minutes time(*small_number(hour) * 60 + *small_number(minute));
  if (as_end && time == days(1)) return time;
  if (time >= days(1) || *small_number(minute) > 59)
    return grammar_.wrong(begin, fmt::format("{}:{} is not a time of day", hour, minute), write_clock);
  return time;
}

Result<Length> Parser::parse_length(const std::vector<minutes>& starts) {
  grammar_.skip_blanks();
  if (grammar_.take('+')) return parse_elapsed();
  if (!grammar_.take('-')) return Length(to_midnight);
  grammar_.skip_blanks();
  const std::size_t begin = grammar_.at();
  auto end = parse_clock(true);
  if (!end) return std::move(end).error();
  if (std::find(starts.begin(), starts.end(), *end) != starts.end())
    return grammar_.wrong(begin, "it ends when it starts", "write +24h for a whole day, or another end");
  return Length(UntilClock{*end});
}

Result<Length> Parser::parse_elapsed() {
  grammar_.skip_blanks();
  const std::size_t begin = grammar_.at();
  const std::string_view word = grammar_.word();
  constexpr std::string_view write_length = "write a duration like +90m or +4h";
  if (word.empty()) return grammar_.wrong(begin, "a duration is missing after +", write_length);
  auto length = parse_duration(word);
  if (!length) {
    const std::string why = length.error().message();
    return grammar_.wrong(begin, fmt::format("\"{}\": {}", printable(word), why.substr(0, why.rfind(';'))),
                          write_length);
  }
  if (word.front() == '+' || *length < shortest_length)
    return grammar_.wrong(begin, fmt::format("{} is too short for a {}", word, thing_), "the shortest is 1m");
  if (*length > longest_length)
    return grammar_.wrong(begin, fmt::format("{} is too long for a {}", word, thing_), "the longest is 744h, 31 days");
  return Length(ForElapsed{std::chrono::floor<seconds>(*length)});
}

Result<Zone> Parser::parse_zone() {
  grammar_.skip_blanks();
  if (grammar_.done()) return Zone();
  const std::size_t begin = grammar_.at();
  const std::string_view name = grammar_.word();
  auto zone = Zone::find(name);
  if (!zone) {
    return Error(zone.error().code(), fmt::format("character {}: {}", begin + 1, zone.error().message()));
  }
  grammar_.skip_blanks();
  if (!grammar_.done()) {
    return grammar_.wrong(grammar_.at(), "nothing may follow the time zone",
                          fmt::format("write each {} separately; the option can be repeated", thing_));
  }
  return zone;
}

// Parses one date, or the first and the last of several.
Result<std::pair<std::chrono::local_days, std::chrono::local_days>> Parser::parse_dates() {
  grammar_.skip_blanks();
  const std::size_t begin = grammar_.at();
  auto first = parse_date();
  if (!first) return std::move(first).error();
  auto last = first;
  if (grammar_.take('.')) {
    if (!grammar_.take('.'))
      return grammar_.wrong(grammar_.at(), "two dots are expected between the dates", write_dates);
    last = parse_date();
    if (!last) return std::move(last).error();
  }
  if (*last < *first) return grammar_.wrong(begin, "the last date is before the first", "swap them");
  return std::pair(*first, *last);
}

Result<std::chrono::local_days> Parser::parse_date() {
  const std::size_t begin = grammar_.at();
  const std::string_view year = grammar_.digits();
  const bool first_dash = grammar_.take('-');
  const std::string_view month = grammar_.digits();
  const bool second_dash = grammar_.take('-');
  const std::string_view day = grammar_.digits();
  const char after = grammar_.next();
  const bool ends = grammar_.done() || is_blank(after) || after == '.';
  if (year.size() != 4 || !first_dash || month.size() != 2 || !second_dash || day.size() != 2 || !ends)
    return grammar_.wrong(begin, "this is not a date", write_dates);
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*small_number(year))),
                                         std::chrono::month(*small_number(month)),
                                         std::chrono::day(*small_number(day))};
  if (!date.ok() || date.year() < std::chrono::year(1))
    return grammar_.wrong(begin, fmt::format("{}-{}-{} does not exist in the calendar", year, month, day), write_dates);
  return std::chrono::local_days(date);
}

}  // namespace

Result<Window> parse_window(std::string_view text) {
  Parser parser("window", text);
  if (auto readable = parser.readable(); !readable) return std::move(readable).error();
  auto recurrence = parser.recurrence();
  if (!recurrence) return std::move(recurrence).error();
  return Window{std::string(text), *std::move(recurrence)};
}

Result<Blackout> parse_blackout(std::string_view text) {
  Parser parser("blackout", text);
  if (auto readable = parser.readable(); !readable) return std::move(readable).error();
  if (parser.is_dates_alone()) return parser.dates();
  auto recurrence = parser.recurrence();
  if (!recurrence) return std::move(recurrence).error();
  Zone zone = recurrence->zone();
  return Blackout{std::string(text), std::move(zone), *std::move(recurrence)};
}

namespace {

// The search for the next start or end of a window stops after this time.
constexpr std::chrono::days two_years(731);
// Times are clamped to this range, because the calendar of the standard library ends in the year 32767, and a wrong
// clock may be beyond it.
constexpr WallTime first_time = std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
constexpr WallTime last_time = std::chrono::sys_days(std::chrono::year(9990) / 1 / 1);

WallTime believable(WallTime at) {
  return std::clamp(at, first_time, last_time);
}

std::optional<WallTime> end_of(const Window& window, WallTime at) {
  return window.recurrence.end_of(at);
}

std::optional<WallTime> end_of(const Blackout& blackout, WallTime at) {
  if (const auto* recurrence = std::get_if<Recurrence>(&blackout.when)) return recurrence->end_of(at);
  const auto& interval = std::get<Interval>(blackout.when);
  return interval.contains(at) ? std::optional(interval.end) : std::nullopt;
}

std::optional<WallTime> next_start(const Window& window, WallTime at, WallTime horizon) {
  return window.recurrence.next_start(at, horizon);
}

std::optional<WallTime> next_start(const Blackout& blackout, WallTime at, WallTime horizon) {
  if (const auto* recurrence = std::get_if<Recurrence>(&blackout.when)) return recurrence->next_start(at, horizon);
  const auto& interval = std::get<Interval>(blackout.when);
  return interval.begin > at && interval.begin < horizon ? std::optional(interval.begin) : std::nullopt;
}

// Returns the latest end of all sources that contain `at`; nothing if there is none.
template <class Source>
std::optional<WallTime> latest_end(const std::vector<Source>& sources, WallTime at) {
  std::optional<WallTime> end;
  for (const Source& source : sources) {
    const auto its = end_of(source, at);
    if (its && (!end || *its > *end)) end = its;
  }
  return end;
}

template <class Source>
std::optional<WallTime> earliest_start(const std::vector<Source>& sources, WallTime at, WallTime horizon) {
  std::optional<WallTime> start;
  for (const Source& source : sources) {
    const auto its = next_start(source, at, start ? *start : horizon);
    if (its) start = its;
  }
  return start;
}

}  // namespace

bool is_over(const Window& window, WallTime now) {
  return window.recurrence.is_over(now);
}

bool is_over(const Blackout& blackout, WallTime now) {
  if (const auto* recurrence = std::get_if<Recurrence>(&blackout.when)) return recurrence->is_over(now);
  return std::get<Interval>(blackout.when).end <= now;
}

Schedule::Schedule(std::vector<Window> windows, std::vector<Blackout> blackouts)
    : windows_(std::move(windows)), blackouts_(std::move(blackouts)) {}

bool Schedule::always() const {
  return windows_.empty() && blackouts_.empty();
}

bool Schedule::in_window(WallTime at) const {
  return windows_.empty() || latest_end(windows_, at).has_value();
}

// Returns the end of the window that contains `at`. Windows that touch or overlap count as one.
std::optional<WallTime> Schedule::window_end(WallTime at, WallTime horizon) const {
  if (windows_.empty()) return std::nullopt;
  while (at < horizon) {
    const auto end = latest_end(windows_, at);
    if (!end) return at;
    at = *end;
  }
  return std::nullopt;
}

std::optional<WallTime> Schedule::next_opening(WallTime now, WallTime horizon) const {
  for (WallTime at = now; at < horizon;) {
    if (const auto blacked_out = latest_end(blackouts_, at)) {
      at = *blacked_out;
    } else if (in_window(at)) {
      return at;
    } else if (const auto start = earliest_start(windows_, at, horizon)) {
      at = *start;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Schedule::State Schedule::at(WallTime now) const {
  now = believable(now);
  const WallTime horizon = now + two_years;
  if (latest_end(blackouts_, now) || !in_window(now)) {
    return {.open = false, .next_open = next_opening(now, horizon)};
  }
  const auto end = window_end(now, horizon);
  const auto blackout = earliest_start(blackouts_, now, end ? *end : horizon);
  return {.open = true, .until = blackout ? blackout : end};
}

bool Schedule::fits(WallTime start, Duration needed) const {
  const State state = at(start);
  return state.open && (!state.until || *state.until - believable(start) >= needed);
}

std::optional<WallTime> Schedule::next_fit(WallTime from, Duration needed) const {
  from = believable(from);
  for (WallTime at = from; at < from + two_years;) {
    const State state = this->at(at);
    if (state.open && (!state.until || *state.until - at >= needed)) return at;
    const auto next = state.open ? state.until : state.next_open;
    if (!next) return std::nullopt;
    at = *next;
  }
  return std::nullopt;
}

std::string Schedule::shown(WallTime at) const {
  at = believable(at);
  if (!windows_.empty()) return windows_.front().recurrence.zone().shown(at);
  return (blackouts_.empty() ? Zone() : blackouts_.front().zone).shown(at);
}

std::string Schedule::closing(WallTime until) const {
  return (in_window(until) ? "a blackout begins " : "the window closes ") + shown(until);
}

std::string Schedule::describe(WallTime now) const {
  if (always()) return "no window is set: always open";
  now = believable(now);
  const State state = at(now);
  if (state.open) {
    return windows_.empty()
               ? fmt::format("outside the blackouts: {}", state.until ? "the next one begins " + shown(*state.until)
                                                                      : "none begins within two years")
               : "inside the window: " + (state.until ? closing(*state.until) : "it does not close within two years");
  }
  if (windows_.empty() || (in_window(now) && latest_end(blackouts_, now))) {
    const auto cause = std::find_if(blackouts_.begin(), blackouts_.end(),
                                    [&](const Blackout& blackout) { return end_of(blackout, now).has_value(); });
    const std::string where = fmt::format("in the blackout \"{}\"", cause->text);
    return state.next_open ? fmt::format("{}: updates may begin again {}", where, shown(*state.next_open))
                           : where + ": no update may begin within two years";
  }
  return state.next_open ? "outside the window: updates may begin again " + shown(*state.next_open)
                         : "outside the window: no update may begin within two years";
}

}  // namespace haulout::agent
