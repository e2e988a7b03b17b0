// Splits the bytes of a watch into lines. Only '\n' ends a line, because chunks and TLS records can end anywhere. No
// I/O; nothing fails.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "k8s/list_budget.hpp"

namespace haulout::k8s {

class LineSplitter {
 public:
  // Limit of a line in bytes. A line is one watch event with one object, and no object is longer than a response may
  // be.
  static constexpr std::size_t default_limit = longest_answer;

  explicit LineSplitter(std::size_t limit = default_limit) : limit_(limit) {}

  void feed(std::string_view bytes);
  // Returns the next complete line without its '\n', valid until the next feed(). Returns nullopt if there is none: the
  // bytes after the last '\n' stay in the buffer.
  std::optional<std::string_view> next();
  // Returns true if the incomplete line is longer than the limit. Call it after next() has returned nullopt.
  bool overlong() const { return buffer_.size() - begin_ > limit_; }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;    // start of the line that next() returns
  std::size_t scanned_ = 0;  // there is no '\n' between begin_ and here
};

inline void LineSplitter::feed(std::string_view bytes) {
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  buffer_.append(bytes);
}

inline std::optional<std::string_view> LineSplitter::next() {
  const auto end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  const auto line = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = scanned_ = end + 1;
  return line;
}

}  // namespace haulout::k8s
