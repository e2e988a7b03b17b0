// One request and its answer on one connection.
#pragma once

#include "http/buffer.hpp"
#include "http/dial.hpp"
#include "http/parser.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// The bytes of a request. Errc::invalid when a part of it would break the framing (a line break in a header value).
Result<std::string> serialize(const Request& request, const std::string& host);

class Conversation {
 public:
  Conversation(std::unique_ptr<Wire> wire, std::uint64_t generation, std::string peer, Limits limits)
      : wire_(std::move(wire)),
        generation_(generation),
        peer_(std::move(peer)),
        buffer_(limits.header),
        parser_(limits) {}

  // Sends the request and reads the head of the answer. `bytes` and *phase must outlive the call.
  Task<> start(const std::string& bytes, Phase* phase);
  // Reads once and decodes; at the end of the stream decides whether the message is complete.
  Task<> advance();
  // As those of BodyStream.
  bool hold_back();
  void read_on();

  ResponseParser& parser() { return parser_; }
  std::uint64_t generation() const { return generation_; }
  // The connection, if the answer is complete and it can carry another request; at most once.
  std::unique_ptr<Wire> release();

 private:
  std::unique_ptr<Wire> wire_;
  std::uint64_t generation_;
  std::string peer_;
  Buffer buffer_;
  ResponseParser parser_;
};

}  // namespace haulout::http
