#include "agent/gates/grammar.hpp"

#include <fmt/format.h>
#include <array>

#include "base/text.hpp"

namespace haulout::agent {

using spelling::is_blank;
using spelling::is_digit;
using spelling::is_letter;
using spelling::lower;

namespace {

template <std::size_t Count>
std::optional<unsigned> named(const std::array<std::string_view, Count>& names, std::string_view name) {
  const std::string wanted = lower(name);
  for (std::size_t i = 0; i < Count; ++i) {
    if (wanted == names[i] || wanted == names[i].substr(0, 3)) return static_cast<unsigned>(i);
  }
  return std::nullopt;
}

}  // namespace

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

namespace spelling {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<unsigned> small_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 6 || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  unsigned value = 0;
  for (const char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

std::optional<unsigned> weekday_named(std::string_view name) {
  static constexpr std::array<std::string_view, 7> names = {"sunday",   "monday", "tuesday", "wednesday",
                                                            "thursday", "friday", "saturday"};
  return named(names, name);
}

std::optional<unsigned> month_named(std::string_view name) {
  static constexpr std::array<std::string_view, 12> names = {"january",   "february", "march",    "april",
                                                             "may",       "june",     "july",     "august",
                                                             "september", "october",  "november", "december"};
  const auto index = named(names, name);
  return index ? std::optional(*index + 1) : std::nullopt;
}

}  // namespace spelling
}  // namespace haulout::agent
