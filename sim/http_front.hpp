// Serves a Transport over HTTP/1.1 on a local address, in real time, so that real clients can talk to a simulated
// cluster. The transport is the cluster's API, optionally with injected faults. Cancellable. Borrows the transport and
// the clock.
#pragma once

#include <memory>

#include "http/server.hpp"
#include "http/transport.hpp"

namespace haulout::sim {

class HttpFront {
 public:
  // Opens the listening socket. Fails as http::Server::listen does.
  static Result<std::unique_ptr<HttpFront>> listen(boost::asio::any_io_executor executor, Clock& clock,
                                                   http::Transport& api, http::ServerOptions options = {});

  std::uint16_t port() const { return server_->port(); }
  boost::asio::awaitable<void> run();

 private:
  HttpFront(Clock& clock, http::Transport& api) : clock_(clock), api_(api) {}
  boost::asio::awaitable<void> serve(http::Exchange& exchange);
  boost::asio::awaitable<void> serve_watch(http::Exchange& exchange);

  Clock& clock_;
  http::Transport& api_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace haulout::sim
