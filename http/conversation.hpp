// Sends one request on one connection and reads its response. Owns the connection until release(). All operations are
// cancellable. They fail with Errc::reset, tls or protocol.
#pragma once

#include "http/buffer.hpp"
#include "http/dial.hpp"
#include "http/parser.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// Returns a request as the bytes to send. `host` becomes its Host header unless it has one. Fails with Errc::invalid if
// a part of the request would break the framing, such as a line break in a header value. Pure.
Result<std::string> serialize(const Request& request, const std::string& host);

class Conversation {
 public:
  Conversation(std::unique_ptr<Wire> wire, std::uint64_t generation, std::string peer, Limits limits)
      : wire_(std::move(wire)),
        generation_(generation),
        peer_(std::move(peer)),
        buffer_(limits.header),
        parser_(limits) {}

  // Sends the request (`bytes`) and reads the head of the response. Writes its progress to *phase. `bytes` and *phase
  // must outlive the call.
  Task<> start(const std::string& bytes, Phase* phase);
  // Reads from the connection once and parses what has arrived. At the end of the stream, fails unless the message is
  // complete.
  Task<> advance();
  // The same as BodyStream::hold_back() and read_on() (transport.hpp).
  bool hold_back();
  void read_on();

  ResponseParser& parser() { return parser_; }
  std::uint64_t generation() const { return generation_; }
  // Returns the connection if the response is complete and the connection can carry another request, otherwise null.
  // Call it at most once.
  std::unique_ptr<Wire> release();

 private:
  std::unique_ptr<Wire> wire_;
  std::uint64_t generation_;
  std::string peer_;
  Buffer buffer_;
  ResponseParser parser_;
};

}  // namespace haulout::http
