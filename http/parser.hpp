// HTTP/1.1 messages from bytes, without I/O: the caller reads, these decode. Nothing here suspends.
//
// put() takes what it can and says how much; what is left must be presented again with more bytes behind it. Decoded
// body bytes collect in body(), from where callers may take them at any time. Failures are Errc::protocol (not HTTP, or
// beyond a limit) and, from put_eof(), Errc::reset (the message is not complete).
#pragma once

#include <memory>

#include "http/message.hpp"
#include "retry/task.hpp"

namespace haulout::http {

struct Limits {
  std::size_t header = std::size_t{64} * 1024;
  std::optional<std::uint64_t> body;  // none: as long as it lasts
};

// Interim answers (1xx) are swallowed, but for 101, which nobody asked for.
class ResponseParser {
 public:
  explicit ResponseParser(Limits limits);
  ~ResponseParser();

  Result<std::size_t> put(std::string_view bytes);
  Result<> put_eof();
  bool got_some() const { return got_some_; }
  bool head_done() const;
  bool done() const;
  // Of a complete message: the connection may carry another one.
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
  // The failure was a body beyond its limit (413), not nonsense (400).
  bool too_large() const;
  Request& request();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::http
