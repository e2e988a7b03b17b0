// A byte stream to a peer, whatever carries it: TCP, TLS over TCP, or a unix socket.
//
// read_some and write report the system's or OpenSSL's own error code; a cancelled one throws operation_aborted, after
// which the wire is good for nothing but destruction. Destruction closes at once: HTTP frames its own messages, so no
// TLS goodbye is waited for. One reader and one writer at a time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <span>
#include <string>
#include <string_view>

#include "http/tls_context.hpp"

namespace haulout::http {

class Wire {
 public:
  struct Outcome {
    boost::system::error_code failure;
    std::size_t bytes = 0;
  };
  virtual ~Wire() = default;
  virtual boost::asio::awaitable<Outcome> read_some(std::span<char> into) = 0;
  // All of it.
  virtual boost::asio::awaitable<boost::system::error_code> write(std::string_view bytes) = 0;
  // As far as the system can, a read returns only when so much has come: for a stream that is read in no hurry. 1 is
  // how a wire begins. May be called while a read is under way, which then ends if so much is there.
  virtual void wake_from(int bytes) = 0;
  // Open, and the peer has sent nothing that was not asked for: only such a connection can carry another request.
  virtual bool quiet() = 0;
  // Says that no more will be sent, so that the peer reads to the end of what was.
  virtual void finish_sending() = 0;
  // Closes with a TCP reset.
  virtual void abort() = 0;
};

std::unique_ptr<Wire> plain_wire(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Wire> plain_wire(boost::asio::local::stream_protocol::socket socket);
// Both shake hands; `peer` ("host:port") is for messages. Errc::tls, or Errc::reset when the peer goes away.
// `host` is what the certificate must name, if the context verifies.
Task<std::unique_ptr<Wire>> tls_client_wire(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> context,
                                            std::string host, std::string peer);
Task<std::unique_ptr<Wire>> tls_server_wire(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> context,
                                            std::string peer);

// The end of a stream at a message boundary (and not, say, a reset).
bool is_orderly_end(const boost::system::error_code& failure);
// A failed read or write in words: Errc::reset, or Errc::tls when the peer complains about our side of TLS.
Error lost_connection(const std::string& peer, std::string_view when, const boost::system::error_code& failure);

}  // namespace haulout::http
