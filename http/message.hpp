// HTTP messages as plain values. Header names compare without regard to case; bodies are whole.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::http {

class Headers {
 public:
  struct Field {
    std::string name;
    std::string value;
  };

  // First value of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  void add(std::string_view name, std::string_view value);
  // Replaces every field of that name by one.
  void set(std::string_view name, std::string_view value);
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

struct Request {
  std::string method = "GET";
  std::string target = "/";  // origin form: path and query, already percent-encoded
  Headers headers;
  std::string body;
  // May be sent again when a reused connection turns out to be dead before any byte of an answer came.
  // True for everything that can be repeated without a second effect.
  bool repeatable = true;
};

struct ResponseHead {
  int status = 0;
  Headers headers;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;
};

// The Date of an answer: the peer's clock, in whole seconds; clamped to 1900 … 2190, as all times of others.
std::optional<std::chrono::sys_seconds> date(const Headers& headers);

// Retry-After of an answer: delta seconds, or an HTTP-date relative to `date_now` (RFC 9110 10.2.3). Nonsense is
// nothing.
std::optional<std::chrono::milliseconds> retry_after(const Headers& headers, std::chrono::sys_seconds date_now);

}  // namespace haulout::http
