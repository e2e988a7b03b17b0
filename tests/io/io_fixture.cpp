#include "tests/io/io_fixture.hpp"

#include <boost/asio/co_spawn.hpp>

namespace haulout::testing {

ScriptedPeer::ScriptedPeer(asio::io_context& context, std::vector<Script> scripts)
    : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), scripts_(std::move(scripts)) {}

std::uint16_t ScriptedPeer::port() const {
  return acceptor_.local_endpoint().port();
}

asio::awaitable<void> ScriptedPeer::run() {
  co_await with_task_group([this](TaskGroup& group) { return accept_into(group); });
}

asio::awaitable<void> ScriptedPeer::accept_into(TaskGroup& group) {
  while (true) {
    auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
    const auto index = std::min(scripts_.size() - 1, static_cast<std::size_t>(connections_++));
    group.spawn(play(std::move(socket), index));
  }
}

asio::awaitable<void> ScriptedPeer::play(Socket socket, std::size_t index) {
  try {
    co_await scripts_[index](socket);
  } catch (const boost::system::system_error&) {
    // The client has closed the connection, or the test has ended: the script ends.
  }
}

asio::awaitable<std::string> read_head(Socket& socket) {
  std::string head;
  const auto size =
      co_await asio::async_read_until(socket, asio::dynamic_buffer(head), "\r\n\r\n", asio::use_awaitable);
  co_return head.substr(0, size);
}

asio::awaitable<void> say(Socket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
}

asio::awaitable<void> wait_for_end(Socket& socket) {
  std::array<char, 1024> rest;
  while (true) co_await socket.async_read_some(asio::buffer(rest), asio::use_awaitable);
}

ScriptedPeer::Script always(std::string answer) {
  return [answer](Socket& socket) -> asio::awaitable<void> {
    while (true) {
      co_await read_head(socket);
      co_await say(socket, answer);
    }
  };
}

ScriptedPeer::Script once(std::string answer) {
  return [answer](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, answer);
  };
}

void IoTest::run_with(std::vector<Coroutine> services, Coroutine body) {
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

void IoTest::run_with(ScriptedPeer& peer, Coroutine body) {
  run_with({[&] { return peer.run(); }}, std::move(body));
}

void IoTest::run_with(http::Server& server, Coroutine body) {
  run_with({[&] { return server.run(); }}, std::move(body));
}

std::unique_ptr<http::Server> IoTest::serve(http::ServerOptions options, http::Server::Handler handler) {
  auto server = http::Server::listen(context.get_executor(), clock, std::move(options), std::move(handler));
  if (!server) throw std::runtime_error(server.error().message());
  return *std::move(server);
}

std::unique_ptr<http::Client> IoTest::client_of(http::Endpoint endpoint, http::TlsOptions tls,
                                                http::ClientOptions options) {
  auto client = http::Client::create(context.get_executor(), clock, std::move(endpoint), std::move(tls), options);
  if (!client) throw std::runtime_error(client.error().message());
  return *std::move(client);
}

std::unique_ptr<http::Client> IoTest::plain_client(std::uint16_t port, http::ClientOptions options) {
  return client_of({http::Endpoint::Kind::tcp, "127.0.0.1", port}, {}, options);
}

http::Request get(std::string target) {
  http::Request request;
  request.target = std::move(target);
  return request;
}

http::Request post(std::string target, std::string body, bool repeatable) {
  http::Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.body = std::move(body);
  request.repeatable = repeatable;
  return request;
}

}  // namespace haulout::testing
