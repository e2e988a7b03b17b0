// Reads the text of one window or black-out piece by piece. It keeps the position, so that every error message can name
// it. The caller adds the name of the option and the text. Only the parsers of this folder use it. Borrows the text.
// No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace haulout::agent {

class Grammar {
 public:
  explicit Grammar(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  // The next character; '\0' at the end.
  char next() const { return done() ? '\0' : text_[at_]; }
  bool take(char c);
  void skip_blanks();
  std::string_view digits();
  std::string_view letters();
  // Reads up to the next blank, or to the end.
  std::string_view word();
  // Returns the text before `stop` and skips `stop`, too. Returns nothing, and does not move, if `stop` does not
  // follow.
  std::optional<std::string_view> until(char stop);

  // Errc::invalid with the message "character <at + 1>: <cause>; <way_out>". `way_out` is the remedy.
  Error wrong(std::size_t at, std::string_view cause, std::string_view way_out) const;

 private:
  template <class Predicate>
  std::string_view while_true(Predicate holds);

  std::string_view text_;
  std::size_t at_ = 0;
};

namespace spelling {

bool is_digit(char c);
bool is_letter(char c);
bool is_blank(char c);
std::string lower(std::string_view text);

// The value of at most six digits. Returns nothing if the text is empty, longer, or has other characters.
std::optional<unsigned> small_number(std::string_view digits);

// Number of a weekday; Sunday is 0. The name has its first three letters or all of them, in upper or lower case.
std::optional<unsigned> weekday_named(std::string_view name);
// Number of a month; January is 1. Names as for weekdays.
std::optional<unsigned> month_named(std::string_view name);

}  // namespace spelling
}  // namespace haulout::agent
