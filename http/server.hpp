// A small HTTP/1.1 server on TCP, optionally with TLS. Serves the agent's status pages, the simulated cluster, and
// tests of the client.
//
// One coroutine per connection, keep-alive, and one request at a time per connection. Pipelined requests are handled in
// order. The handler responds to each exchange exactly once, by reply(), or by start_stream(), write()… and end(). If
// it returns without a response, the server closes the connection. Handlers may run for any time. They are cancelled
// when the server stops. ServerOptions limits how long the server waits for a peer. If there are too many connections,
// the server closes the one for which it has waited longest, either for a request or for the peer to accept a response.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http/client.hpp"
#include "http/message.hpp"

namespace haulout::http {

// One request and its response. The handler borrows it.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  // The operations of an exchange fail with Errc::reset if the peer has disconnected, and with Errc::timeout if it does
  // not read. They are cancellable.
  virtual Task<> reply(Response response) = 0;
  // Starts a chunked response. Each write() sends one chunk.
  virtual Task<> start_stream(ResponseHead head) = 0;
  virtual Task<> write(std::string chunk) = 0;
  virtual Task<> end() = 0;
  // Resets the connection at once. Used to inject faults.
  virtual void abort() = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0 selects any free port
  bool tls = false;
  // client_cert_pem and client_key_pem are the server's own certificate and key. If ca_pem is set, clients must present
  // a certificate that it verifies.
  TlsOptions tls_options;
  std::size_t head_limit = std::size_t{1024} * 1024;      // limit of a request head, in bytes; as in kube-apiserver
  std::size_t body_limit = std::size_t{3} * 1024 * 1024;  // limit of a request body, in bytes; as in kube-apiserver
  Duration idle_timeout = std::chrono::minutes(2);        // time between two requests; longer than in clients
  Duration request_timeout = std::chrono::seconds(30);    // time from the first byte of a request to its last
  Duration send_timeout = std::chrono::seconds(30);       // time for a peer to accept a response, or one chunk of it
  // Limit for the number of open connections. If a new one exceeds it, the server closes the connection for which it
  // has waited longest. If it waits for none, it closes the new one.
  std::size_t max_connections = 10'000;
};

class Server {
 public:
  using Handler = std::function<boost::asio::awaitable<void>(Exchange&)>;

  // Creates a server that listens; run() accepts connections. Fails with Errc::unavailable if it cannot listen on the
  // address, and with Errc::tls if the PEM data is invalid. Borrows `clock`.
  static Result<std::unique_ptr<Server>> listen(boost::asio::any_io_executor executor, Clock& clock,
                                                ServerOptions options, Handler handler);
  ~Server();

  std::uint16_t port() const;
  // Accepts and serves connections until it is cancelled. Then closes every connection and waits for their coroutines.
  boost::asio::awaitable<void> run();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::http
