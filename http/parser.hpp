// Parse HTTP/1.1 messages from bytes that the caller has read. No I/O; nothing here suspends.
//
// put() returns the number of bytes that it has used. The caller passes the unused bytes again, followed by more bytes.
// put() fails with Errc::protocol if the bytes are not HTTP or exceed a limit. put_eof() handles the end of the stream:
// it fails with Errc::reset if the message is not complete. body() has the body bytes that were decoded so far, and the
// caller may take them out at any time.
#pragma once

#include <memory>

#include "http/message.hpp"
#include "retry/task.hpp"

namespace haulout::http {

// Limits for the head and the body of a message, in bytes.
struct Limits {
  std::size_t header = std::size_t{64} * 1024;
  std::optional<std::uint64_t> body;  // unset: no limit
};

// Parses one response. Skips interim responses (1xx). Fails with Errc::protocol at a 101, because the client never
// requests another protocol, and at a status below 100, which RFC 9110 (15) does not know.
class ResponseParser {
 public:
  explicit ResponseParser(Limits limits);
  ~ResponseParser();

  Result<std::size_t> put(std::string_view bytes);
  Result<> put_eof();
  // Returns whether a byte of the message has arrived.
  bool got_some() const { return got_some_; }
  bool head_done() const;
  bool done() const;
  // Returns whether the connection can carry another message. Valid only if the message is complete.
  bool keep_alive() const;
  // Valid once head_done() is true. The reference is valid as long as the parser.
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
  // Returns whether put() failed because the body exceeded its limit: then the server responds 413, otherwise 400.
  bool too_large() const;
  Request& request();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::http
