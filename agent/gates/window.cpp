#include "agent/gates/window.hpp"

#include <fmt/format.h>

#include "agent/gates/cron.hpp"
#include "agent/gates/grammar.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

using spelling::is_blank;
using spelling::is_digit;
using spelling::is_letter;
using spelling::lower;
using spelling::small_number;
using spelling::weekday_named;

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t longest_text = 500;  // characters; a longer text is a mistake
constexpr minutes shortest_length(1);
constexpr days longest_length(31);
constexpr UntilClock to_midnight{days(1)};

constexpr std::string_view write_days = "days are Mon, Tue, Wed, Thu, Fri, Sat, Sun, as Mon-Fri, Sat,Sun or 2nd Tue";
constexpr std::string_view write_start =
    "write it like 22:00+4h, Sat,Sun 01:00+6h Europe/Berlin or cron(0 2 * * 1-5)+3h";
constexpr std::string_view write_dates = "write it like 2026-12-20..2027-01-03 Europe/Berlin";

struct Starts {
  Days days;
  std::vector<minutes> times;
};

// Converts "1st" … "5th" and "last" to the bit of Days::nth.
std::optional<std::size_t> ordinal(std::string_view word) {
  static constexpr std::string_view ordinals[] = {"", "1st", "2nd", "3rd", "4th", "5th", "last"};
  for (std::size_t i = 1; i < std::size(ordinals); ++i) {
    if (lower(word) == ordinals[i]) return i;
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

  bool has_dates() {
    Grammar ahead = grammar_;
    ahead.skip_blanks();
    return ahead.digits().size() == 4 && ahead.take('-');
  }

  Result<Blackout> dates() {
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
    auto zone = parse_zone();
    if (!zone) return std::move(zone).error();
    return Blackout{std::string(text_), *zone, Interval{zone->instant(*first), zone->instant(*last + days(1))}};
  }

  Error dates_are_for_blackouts() {
    grammar_.skip_blanks();
    return grammar_.wrong(grammar_.at(), "dates are for blackouts only", write_start);
  }

  std::optional<Error> unreadable() {
    if (text_.size() > longest_text)
      return grammar_.wrong(longest_text, fmt::format("a {} cannot be longer", thing_), write_start);
    grammar_.skip_blanks();
    if (grammar_.done()) return grammar_.wrong(grammar_.at(), "it is empty", write_start);
    return std::nullopt;
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
  Result<std::chrono::local_days> parse_date();
  bool at_clock() const;
  bool at_ordinal() const;

  std::string_view thing_;
  std::string_view text_;
  Grammar grammar_;
};

bool Parser::at_clock() const {
  Grammar ahead = grammar_;
  return !ahead.digits().empty() && !is_letter(ahead.next());
}

bool Parser::at_ordinal() const {
  Grammar ahead = grammar_;
  return is_digit(ahead.next()) || lower(ahead.letters()) == "last";
}

Result<Starts> Parser::parse_starts() {
  grammar_.skip_blanks();
  if (Grammar ahead = grammar_; lower(ahead.letters()) == "cron") return parse_cron_starts();
  Starts starts;
  if (!at_clock()) {
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
  constexpr std::string_view write_clock = "write hours and minutes, from 00:00 to 23:59";
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
  if (auto problem = parser.unreadable()) return *std::move(problem);
  if (parser.has_dates()) return parser.dates_are_for_blackouts();
  auto recurrence = parser.recurrence();
  if (!recurrence) return std::move(recurrence).error();
  return Window{std::string(text), *std::move(recurrence)};
}

Result<Blackout> parse_blackout(std::string_view text) {
  Parser parser("black-out", text);
  if (auto problem = parser.unreadable()) return *std::move(problem);
  if (parser.has_dates()) return parser.dates();
  auto recurrence = parser.recurrence();
  if (!recurrence) return std::move(recurrence).error();
  Zone zone = recurrence->zone();
  return Blackout{std::string(text), std::move(zone), *std::move(recurrence)};
}

}  // namespace haulout::agent
