#include "sim/http_front.hpp"

#include "sim/call.hpp"

namespace haulout::sim {
namespace {
// Limit for one response. The slowest response of the simulated server takes about 10 s: an eviction that retries after
// conflicts.
constexpr Duration longest_answer = std::chrono::seconds(60);
}  // namespace

Result<std::unique_ptr<HttpFront>> HttpFront::listen(boost::asio::any_io_executor executor, Clock& clock,
                                                     http::Transport& api, http::ServerOptions options) {
  std::unique_ptr<HttpFront> front(new HttpFront(clock, api));
  auto server = http::Server::listen(executor, clock, std::move(options),
                                     [self = front.get()](http::Exchange& exchange) { return self->serve(exchange); });
  if (!server) return std::move(server).error();
  front->server_ = *std::move(server);
  return front;
}

boost::asio::awaitable<void> HttpFront::run() {
  co_await server_->run();
}

boost::asio::awaitable<void> HttpFront::serve(http::Exchange& exchange) {
  if (parse_call(exchange.request()).verb == "watch") {
    co_await serve_watch(exchange);
    co_return;
  }
  auto response = co_await api_.round_trip(exchange.request(), clock_.now() + longest_answer);
  if (!response) {
    exchange.abort();
    co_return;
  }
  // A failure is ignored: the client may have closed the connection.
  [[maybe_unused]] const auto sent = co_await exchange.reply(*std::move(response));
}

boost::asio::awaitable<void> HttpFront::serve_watch(http::Exchange& exchange) {
  auto stream = co_await api_.open(exchange.request(), clock_.now() + longest_answer);
  if (!stream) {
    exchange.abort();
    co_return;
  }
  auto sent = co_await exchange.start_stream((*stream)->head());
  while (sent) {
    auto piece = co_await (*stream)->read_some(TimePoint::max());
    if (!piece) {
      exchange.abort();
      co_return;
    }
    if (piece->empty()) {
      sent = co_await exchange.end();
      co_return;
    }
    sent = co_await exchange.write(*std::move(piece));
  }
}

}  // namespace haulout::sim
