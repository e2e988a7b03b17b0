#include "http/conversation.hpp"

#include <fmt/format.h>

namespace haulout::http {
namespace {

// Returns whether the text has no control characters except tabs. A line break in a value would begin another header.
bool clean(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20 && c != '\t') || code == 0x7f;
  });
}

bool is_word(std::string_view text) {
  return !text.empty() && clean(text) && text.find_first_of(" \t:") == std::string_view::npos;
}

Error malformed(std::string_view what) {
  return Error(Errc::invalid, fmt::format("the request cannot be sent: its {} is malformed", what));
}

void append(std::string& to, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) to.append(part);
}

}  // namespace

Result<std::string> serialize(const Request& request, const std::string& host) {
  if (!is_word(request.method)) return malformed("method");
  if (!request.target.starts_with('/') || !clean(request.target) || request.target.find(' ') != std::string::npos)
    return malformed("path");
  std::string bytes;
  bytes.reserve(1024 + request.body.size());
  append(bytes, {request.method, " ", request.target, " HTTP/1.1\r\n"});
  if (!request.headers.find("Host")) append(bytes, {"Host: ", host, "\r\n"});
  for (const auto& [name, value] : request.headers.fields()) {
    if (!is_word(name) || !clean(value)) return malformed("header " + name);
    append(bytes, {name, ": ", value, "\r\n"});
  }
  const bool may_have_body = request.method != "GET" && request.method != "HEAD" && request.method != "DELETE";
  if (may_have_body || !request.body.empty())
    append(bytes, {"Content-Length: ", std::to_string(request.body.size()), "\r\n"});
  append(bytes, {"\r\n", request.body});
  return bytes;
}

Task<> Conversation::start(const std::string& bytes, Phase* phase) {
  *phase = Phase::send;
  const auto write_failure = co_await wire_->write(bytes);
  *phase = Phase::answer;
  while (!parser_.head_done()) {
    auto read = co_await advance();
    if (read) continue;
    // A server that rejects the request may respond and close the connection before it has read everything. If a
    // response has arrived, it is used, because it explains more than the failed write.
    if (write_failure && !parser_.got_some() && read.error().code() != Errc::tls)
      co_return lost_connection(peer_, "while the request was being sent", write_failure);
    co_return read;
  }
  co_return Result<>();
}

Task<> Conversation::advance() {
  const auto room = buffer_.prepare();
  if (room.empty())
    co_return Error(
        Errc::protocol,
        fmt::format("the answer of {} cannot be used: the HTTP headers of the answer or of a chunk are too long",
                    peer_));
  const auto [failure, bytes] = co_await wire_->read_some(room);
  if (failure) {
    if (!is_orderly_end(failure) || !parser_.put_eof())
      co_return lost_connection(peer_, "before the answer was complete", failure);
    co_return Result<>();
  }
  buffer_.commit(bytes);
  const auto unusable = [this](std::string_view why) {
    return Error(Errc::protocol, fmt::format("the answer of {} cannot be used: {}", peer_, why));
  };
  // Detects a TLS alert (first byte 0x15) here, because it is shorter than the input that the parser needs to report an
  // error.
  if (!parser_.got_some() && buffer_.view().starts_with('\x15'))
    co_return unusable("the server seems to use TLS; write https:// in its address");
  const auto used = parser_.put(buffer_.view());
  if (!used) co_return unusable(used.error().message());
  buffer_.consume(*used);
  co_return Result<>();
}

bool Conversation::hold_back() {
  // Number of bytes that must arrive before a reader that is held back is woken. It is much less than the initial
  // receive buffer of a socket (128 KB, half of which is bookkeeping). If the server had to wait for free buffer space,
  // it would soon end the watch.
  constexpr int plenty = 48 * 1024;
  if (!wire_ || !parser_.body().empty() || parser_.done() || !wire_->quiet()) return false;
  wire_->wake_from(plenty);
  return true;
}

void Conversation::read_on() {
  if (wire_) wire_->wake_from(1);
}

std::unique_ptr<Wire> Conversation::release() {
  if (!parser_.done() || !parser_.keep_alive() || !buffer_.view().empty()) return nullptr;
  return std::move(wire_);
}

}  // namespace haulout::http
