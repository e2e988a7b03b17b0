// One request and its response on one connection. Owns the connection until release(). All operations are cancellable.
#pragma once

#include "http/buffer.hpp"
#include "http/dial.hpp"
#include "http/parser.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// Returns the bytes of a request. Errc::invalid if a part of it would break the framing, for example a line break in a
// header value. Pure.
Result<std::string> serialize(const Request& request, const std::string& host);

class Conversation {
 public:
  Conversation(std::unique_ptr<Wire> wire, std::uint64_t generation, std::string peer, Limits limits)
      : wire_(std::move(wire)),
        generation_(generation),
        peer_(std::move(peer)),
        buffer_(limits.header),
        parser_(limits) {}

  // Sends the request and reads the head of the response. `bytes` and *phase must outlive the call.
  Task<> start(const std::string& bytes, Phase* phase);
  // Reads and decodes once. At the end of the stream, fails unless the message is complete.
  Task<> advance();
  // See BodyStream.
  bool hold_back();
  void read_on();

  ResponseParser& parser() { return parser_; }
  std::uint64_t generation() const { return generation_; }
  // Returns the connection if the response is complete and the connection can carry another request; else null. Call it
  // at most once.
  std::unique_ptr<Wire> release();

 private:
  std::unique_ptr<Wire> wire_;
  std::uint64_t generation_;
  std::string peer_;
  Buffer buffer_;
  ResponseParser parser_;
};

}  // namespace haulout::http
