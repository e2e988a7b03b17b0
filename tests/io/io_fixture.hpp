// Fixture with real sockets on loopback and one io_context. run_with() runs a coroutine, and the services that it uses,
// to its end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
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
  ScriptedPeer(asio::io_context& context, std::vector<Script> scripts);

  std::uint16_t port() const;
  int connections() const { return connections_; }

  asio::awaitable<void> run();

 private:
  asio::awaitable<void> accept_into(TaskGroup& group);
  asio::awaitable<void> play(Socket socket, std::size_t index);

  tcp::acceptor acceptor_;
  std::vector<Script> scripts_;
  int connections_ = 0;
};

// Returns the head of the next request, with its blank line. Throws at the end of the stream. Expects no body.
asio::awaitable<std::string> read_head(Socket& socket);

asio::awaitable<void> say(Socket& socket, std::string text);

// Waits until the client closes the connection, and then throws.
asio::awaitable<void> wait_for_end(Socket& socket);

// Answers every request with `answer`.
ScriptedPeer::Script always(std::string answer);

// Answers the first request with `answer` and then closes the connection.
ScriptedPeer::Script once(std::string answer);

class IoTest : public ::testing::Test {
 protected:
  using Coroutine = std::function<asio::awaitable<void>()>;

  asio::io_context context{1};
  RealClock clock;

  TimePoint in(Duration delta) const { return clock.now() + delta; }
  // Returns a deadline so far away that it never passes in a successful run.
  TimePoint soon() const { return in(std::chrono::seconds(50)); }

  // Runs `body` while the services run. The services are cancelled and joined when `body` ends.
  void run_with(std::vector<Coroutine> services, Coroutine body);
  void run_with(ScriptedPeer& peer, Coroutine body);
  void run_with(http::Server& server, Coroutine body);

  std::unique_ptr<http::Server> serve(http::ServerOptions options, http::Server::Handler handler);
  std::unique_ptr<http::Client> client_of(http::Endpoint endpoint, http::TlsOptions tls = {},
                                          http::ClientOptions options = {});
  std::unique_ptr<http::Client> plain_client(std::uint16_t port, http::ClientOptions options = {});
};

http::Request get(std::string target);
http::Request post(std::string target, std::string body, bool repeatable = false);

template <class T>
Errc code_of(const Result<T>& result) {
  if (result) throw std::runtime_error("a failure was expected");
  return result.error().code();
}

}  // namespace haulout::testing
