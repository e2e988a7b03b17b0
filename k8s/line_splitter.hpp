// Cuts the bytes of a watch into lines at '\n' and nowhere else: chunks and TLS records end anywhere. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "k8s/list_budget.hpp"

namespace haulout::k8s {

class LineSplitter {
 public:
  // An event is one object, and no object is longer than an answer may be.
  static constexpr std::size_t default_limit = longest_answer;

  explicit LineSplitter(std::size_t limit = default_limit) : limit_(limit) {}

  void feed(std::string_view bytes);
  // The next complete line without its '\n', valid until the next feed(). What follows the last '\n' is kept back.
  std::optional<std::string_view> next();
  // The line that has begun is longer than the limit; ask after next() has returned nothing.
  bool overlong() const { return buffer_.size() - begin_ > limit_; }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;    // of the line that next() returns
  std::size_t scanned_ = 0;  // no '\n' between begin_ and here
};

}  // namespace haulout::k8s
