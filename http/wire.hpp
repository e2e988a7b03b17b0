// A byte stream to a peer over TCP, TLS over TCP, or a unix socket.
//
// read_some() and write() return the error code of the system or of OpenSSL. A cancelled operation throws
// operation_aborted, and then the wire can only be destroyed. Destruction closes the connection at once, without TLS
// close_notify, because HTTP itself marks the end of each message. One reader and one writer at a time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/system/system_error.hpp>
#include <span>
#include <string>
#include <string_view>

#include "http/tls_context.hpp"

namespace haulout::http {

// For Asio operations that return their error code as a value. Throws boost::system::system_error if the code says that
// the operation was cancelled, so that the cancellation unwinds the coroutine. Otherwise does nothing. No I/O.
inline void unwind_if_cancelled(const boost::system::error_code& failure) {
  if (failure == boost::asio::error::operation_aborted) throw boost::system::system_error(failure);
}

class Wire {
 public:
  struct Outcome {
    boost::system::error_code failure;
    std::size_t bytes = 0;
  };
  virtual ~Wire() = default;
  virtual boost::asio::awaitable<Outcome> read_some(std::span<char> into) = 0;
  // Writes all bytes.
  virtual boost::asio::awaitable<boost::system::error_code> write(std::string_view bytes) = 0;
  // Sets the number of bytes that must have arrived before a read returns, as far as the system supports it. Used for
  // streams whose reader can wait. Initially 1. May be called during a read, which then returns if enough bytes have
  // arrived.
  virtual void wake_from(int bytes) = 0;
  // Returns whether the wire is open and no unrequested input has arrived. Only such a connection can carry another
  // request.
  virtual bool quiet() = 0;
  // Ends the outgoing stream, so that the peer reads the end after all bytes.
  virtual void finish_sending() = 0;
  // Closes the connection with a TCP reset.
  virtual void abort() = 0;
};

std::unique_ptr<Wire> plain_wire(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Wire> plain_wire(boost::asio::local::stream_protocol::socket socket);
// tls_client_wire() and tls_server_wire() perform the TLS handshake and return the connection. `peer` ("host:port") is
// for messages. If the context verifies certificates, the server's certificate must name `host`. They fail with
// Errc::tls, or with Errc::reset if the peer disconnects. Cancellable.
Task<std::unique_ptr<Wire>> tls_client_wire(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> context,
                                            std::string host, std::string peer);
Task<std::unique_ptr<Wire>> tls_server_wire(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> context,
                                            std::string peer);

// Returns whether `failure` is a proper end of the stream and not, for example, a reset.
bool is_orderly_end(const boost::system::error_code& failure);
// Returns the error for a failed read or write: Errc::reset, or Errc::tls if the peer sent a TLS alert. `when` says at
// which point, for the message: "before the answer was complete".
Error lost_connection(const std::string& peer, std::string_view when, const boost::system::error_code& failure);

}  // namespace haulout::http
