// Reads one window or black-out piece by piece and knows where it stands, so that every error can say so; whoever knows
// which option it is names that and the text. Used by the parsers of this folder only; the text must outlive it.
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
  // '\0' at the end.
  char next() const { return done() ? '\0' : text_[at_]; }
  bool take(char c);
  void skip_blanks();
  std::string_view digits();
  std::string_view letters();
  // Up to the next blank, or to the end.
  std::string_view word();
  // Up to `stop`, which is taken as well; nothing if it does not come.
  std::optional<std::string_view> until(char stop);

  // "character 1: <cause>; <way out>".
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

// The number that these digits write; nothing for none, for other characters, or for more than six of them.
std::optional<unsigned> small_number(std::string_view digits);

// Sunday is 0. Three letters or the whole name, in any case.
std::optional<unsigned> weekday_named(std::string_view name);
// January is 1.
std::optional<unsigned> month_named(std::string_view name);

}  // namespace spelling
}  // namespace haulout::agent
