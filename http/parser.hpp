// Parsers for HTTP/1.1 messages. The caller reads the bytes, the parsers decode them. No I/O; nothing here suspends.
//
// put() returns the number of bytes that it has used. The caller presents the unused bytes again with more bytes behind
// them. Decoded body bytes collect in body(), and the caller may take them out at any time. Failures are Errc::protocol
// (not HTTP, or beyond a limit). put_eof() fails with Errc::reset if the message is not complete.
#pragma once

#include <memory>

#include "http/message.hpp"
#include "retry/task.hpp"

namespace haulout::http {

struct Limits {
  std::size_t header = std::size_t{64} * 1024;
  std::optional<std::uint64_t> body;  // empty: no limit
};

// Skips interim responses (1xx). A 101 is an error, since the client never asks to switch protocols.
class ResponseParser {
 public:
  explicit ResponseParser(Limits limits);
  ~ResponseParser();

  Result<std::size_t> put(std::string_view bytes);
  Result<> put_eof();
  bool got_some() const { return got_some_; }
  bool head_done() const;
  bool done() const;
  // Valid for a complete message: whether the connection can carry another one.
  bool keep_alive() const;
  ResponseHead& head();
  std::string& body();

 private:
  class Impl;
  Limits limits_;
  std::unique_ptr<Impl> impl_;
  bool got_some_ = false;
};

class RequestParser {
 public:
  explicit RequestParser(Limits limits);
  ~RequestParser();

  Result<std::size_t> put(std::string_view bytes);
  bool got_some() const;
  bool head_done() const;
  bool done() const;
  bool keep_alive() const;
  // Whether the body exceeded its limit (status 413). Any other parse failure means status 400.
  bool too_large() const;
  Request& request();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::http
