// HTTP messages as plain values, and the reading of two of their headers. Header names compare case-insensitively. A
// body is stored as a whole. No I/O; nothing fails.
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

  // Returns the first value of the header with this name, or nullopt. The value is valid until the headers change.
  std::optional<std::string_view> find(std::string_view name) const;
  void add(std::string_view name, std::string_view value);
  // Replaces all fields of this name with one.
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
  // Whether the client may send the request again if a reused connection is lost before any byte of the response has
  // arrived. True for requests that have the same effect whether the server receives them once or twice.
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

// Returns the time in the Date header of a response, in whole seconds. It is clamped to 1900 … 2190, as all times from
// peers are. Returns nullopt if the header is absent or invalid.
std::optional<std::chrono::sys_seconds> date(const Headers& headers);

// Returns the wait that the Retry-After header of a response requests: a number of seconds, or the time from `date_now`
// to an HTTP-date (RFC 9110 10.2.3). Returns nullopt if the header is absent or invalid.
std::optional<std::chrono::milliseconds> retry_after(const Headers& headers, std::chrono::sys_seconds date_now);

}  // namespace haulout::http
