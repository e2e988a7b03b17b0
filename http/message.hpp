// HTTP messages as plain values. Header names compare case-insensitively. A body is held as a whole. No I/O.
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

  // First value of the header with this name.
  std::optional<std::string_view> find(std::string_view name) const;
  void add(std::string_view name, std::string_view value);
  // Replaces all fields of this name by one.
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
  // Whether the client may send the request again if a reused connection turns out to be dead before any byte of the
  // response. True for requests whose repetition has no second effect.
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

// Date header of a response: the peer's clock in whole seconds. Clamped to 1900 … 2190, as all times from peers.
std::optional<std::chrono::sys_seconds> date(const Headers& headers);

// Retry-After header of a response: seconds, or an HTTP-date relative to `date_now` (RFC 9110 10.2.3). Returns nothing
// if the value is invalid.
std::optional<std::chrono::milliseconds> retry_after(const Headers& headers, std::chrono::sys_seconds date_now);

}  // namespace haulout::http
