// A small HTTP/1.1 server on TCP, optionally TLS: for the simulated cluster and for tests of the client.
//
// One coroutine per connection, keep-alive, one request at a time per connection (no pipelining beyond reading in
// order). The handler answers each exchange exactly once, by reply() or by start_stream() and write()… end(); returning
// without an answer closes the connection. Handlers may run for as long as they like; they are cancelled when the
// server stops. Peers are not waited for for ever: see ServerOptions. When there are too many connections, the one that
// the server has waited for longest (for a request, or for its peer to take an answer) is closed for the next one.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http/client.hpp"
#include "http/message.hpp"

namespace haulout::http {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  // These fail with Errc::reset when the peer has gone, Errc::timeout when it does not read.
  virtual Task<> reply(Response response) = 0;
  // Chunked transfer: one chunk per write().
  virtual Task<> start_stream(ResponseHead head) = 0;
  virtual Task<> write(std::string chunk) = 0;
  virtual Task<> end() = 0;
  // Drops the connection at once (a fault on purpose).
  virtual void abort() = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port
  bool tls = false;
  TlsOptions
      tls_options;  // client_cert_pem and client_key_pem are the server's own; ca_pem set: client certificates required
  std::size_t head_limit = std::size_t{1024} * 1024;  // as kube-apiserver
  std::size_t body_limit = std::size_t{3} * 1024 * 1024;
  Duration idle_timeout = std::chrono::minutes(2);      // between two requests; longer than clients keep connections
  Duration request_timeout = std::chrono::seconds(30);  // from the first byte of a request to its last
  Duration send_timeout = std::chrono::seconds(30);     // for a peer to take an answer, or a chunk of one
  // One more closes the one that was waited for longest; itself, if none is.
  std::size_t max_connections = 10'000;
};

class Server {
 public:
  using Handler = std::function<boost::asio::awaitable<void>(Exchange&)>;

  // Errc::unavailable when the address cannot be bound, Errc::tls for bad PEM.
  static Result<std::unique_ptr<Server>> listen(boost::asio::any_io_executor executor, Clock& clock,
                                                ServerOptions options, Handler handler);
  ~Server();

  std::uint16_t port() const;
  // Accepts and serves until cancelled; then closes every connection and joins their coroutines.
  boost::asio::awaitable<void> run();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::http
