// Fixture with real sockets on loopback and one io_context. run_with() runs a coroutine, and the services that it uses,
// to its end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "http/client.hpp"
#include "http/server.hpp"
#include "retry/real_clock.hpp"
#include "retry/task_group.hpp"

namespace haulout::testing {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Socket = tcp::socket;

// A peer that follows the scripts of a test. The scripts are used in order, one per accepted connection. Later
// connections get the last script. The peer closes a connection when its script ends.
class ScriptedPeer {
 public:
  using Script = std::function<asio::awaitable<void>(Socket&)>;
  ScriptedPeer(asio::io_context& context, std::vector<Script> scripts)
      : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), scripts_(std::move(scripts)) {}

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  int connections() const { return connections_; }

  asio::awaitable<void> run() {
    co_await with_task_group([this](TaskGroup& group) { return accept_into(group); });
  }

 private:
  asio::awaitable<void> accept_into(TaskGroup& group) {
    while (true) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      const auto index = std::min(scripts_.size() - 1, static_cast<std::size_t>(connections_++));
      group.spawn(play(std::move(socket), index));
    }
  }
  asio::awaitable<void> play(Socket socket, std::size_t index) {
    try {
      co_await scripts_[index](socket);
    } catch (const boost::system::system_error&) {
      // The client has closed the connection, or the test has ended: the script ends.
    }
  }

  tcp::acceptor acceptor_;
  std::vector<Script> scripts_;
  int connections_ = 0;
};

// Returns the head of the next request, with its blank line. Throws at the end of the stream. Expects no body.
inline asio::awaitable<std::string> read_head(Socket& socket) {
  std::string head;
  const auto size =
      co_await asio::async_read_until(socket, asio::dynamic_buffer(head), "\r\n\r\n", asio::use_awaitable);
  co_return head.substr(0, size);
}

inline asio::awaitable<void> say(Socket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
}

// Waits until the client closes the connection, and then throws.
inline asio::awaitable<void> wait_for_end(Socket& socket) {
  std::array<char, 1024> rest;
  while (true) co_await socket.async_read_some(asio::buffer(rest), asio::use_awaitable);
}

// Answers every request with `answer`.
inline ScriptedPeer::Script always(std::string answer) {
  return [answer](Socket& socket) -> asio::awaitable<void> {
    while (true) {
      co_await read_head(socket);
      co_await say(socket, answer);
    }
  };
}

// Answers the first request with `answer` and then closes the connection.
inline ScriptedPeer::Script once(std::string answer) {
  return [answer](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, answer);
  };
}

class IoTest : public ::testing::Test {
 protected:
  asio::io_context context{1};
  RealClock clock;

  TimePoint in(Duration delta) const { return clock.now() + delta; }
  // Returns a deadline so far away that it never passes in a successful run.
  TimePoint soon() const { return in(std::chrono::seconds(50)); }

  // Runs `body` while the services run. The services are cancelled and joined when `body` ends.
  template <class Body>
  void run_with(std::vector<std::function<asio::awaitable<void>()>> services, Body body) {
    bool ended = false;
    std::exception_ptr failure;
    asio::co_spawn(context, with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
                     for (const auto& service : services) group.spawn(service());
                     co_await body();
                   }),
                   [&](std::exception_ptr thrown) {
                     ended = true;
                     failure = thrown;
                   });
    context.run_for(std::chrono::seconds(60));
    if (failure) std::rethrow_exception(failure);
    ASSERT_TRUE(ended) << "hung";
  }
  template <class Body>
  void run_with(ScriptedPeer& peer, Body body) {
    run_with({[&] { return peer.run(); }}, std::move(body));
  }
  template <class Body>
  void run_with(http::Server& server, Body body) {
    run_with({[&] { return server.run(); }}, std::move(body));
  }

  std::unique_ptr<http::Server> serve(http::ServerOptions options, http::Server::Handler handler) {
    auto server = http::Server::listen(context.get_executor(), clock, std::move(options), std::move(handler));
    if (!server) throw std::runtime_error(server.error().message());
    return *std::move(server);
  }
  std::unique_ptr<http::Client> client_of(http::Endpoint endpoint, http::TlsOptions tls = {},
                                          http::ClientOptions options = {}) {
    auto client = http::Client::create(context.get_executor(), clock, std::move(endpoint), std::move(tls), options);
    if (!client) throw std::runtime_error(client.error().message());
    return *std::move(client);
  }
  std::unique_ptr<http::Client> plain_client(std::uint16_t port, http::ClientOptions options = {}) {
    return client_of({http::Endpoint::Kind::tcp, "127.0.0.1", port}, {}, options);
  }
};

inline http::Request get(std::string target) {
  http::Request request;
  request.target = std::move(target);
  return request;
}

inline http::Request post(std::string target, std::string body, bool repeatable = false) {
  http::Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.body = std::move(body);
  request.repeatable = repeatable;
  return request;
}

template <class T>
Errc code_of(const Result<T>& result) {
  if (result) throw std::runtime_error("a failure was expected");
  return result.error().code();
}

}  // namespace haulout::testing
