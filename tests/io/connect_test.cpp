// Tests how connections are made, and how they fail.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>

#include "certificates.hpp"
#include "http/dial.hpp"
#include "io_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using http::Endpoint;
using ::testing::HasSubstr;

class ConnectTest : public IoTest {
 protected:
  // A port on which no process listens. It is bound, so that no other process can use it.
  tcp::socket occupied{context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};

  void expect_failure(Endpoint endpoint, Errc code) {
    const std::string host = endpoint.host;
    auto client = client_of(std::move(endpoint));
    run_with({}, [&]() -> asio::awaitable<void> {
      const auto response = co_await client->round_trip(get("/"), soon());
      EXPECT_EQ(code_of(response), code) << response.error().message();
      EXPECT_THAT(response.error().message(), HasSubstr(host));
    });
  }
};

TEST_F(ConnectTest, RefusedIsUnreachable) {
  const auto port = occupied.local_endpoint().port();
  expect_failure({Endpoint::Kind::tcp, "127.0.0.1", port}, Errc::unreachable);
  context.restart();
  expect_failure({Endpoint::Kind::tls, "127.0.0.1", port}, Errc::unreachable);
}

TEST_F(ConnectTest, AnUnknownHostIsDns) {
  expect_failure({Endpoint::Kind::tls, "nonexistent.invalid", 443}, Errc::dns);
}

TEST_F(ConnectTest, AnUnknownSocketIsUnreachable) {
  expect_failure({Endpoint::Kind::unix_socket, "/nonexistent/socket", 0}, Errc::unreachable);
  context.restart();
  expect_failure({Endpoint::Kind::unix_socket, "/" + std::string(200, 'x'), 0}, Errc::unreachable);
}

TEST_F(ConnectTest, ANameIsLookedUpAndItsAddressesAreTriedInTurn) {
  // "localhost" may first resolve to ::1, where the test's server does not listen.
  ScriptedPeer peer(context, {always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")});
  auto client = client_of({Endpoint::Kind::tcp, "localhost", peer.port()});
  run_with(peer, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(response) << response.error().message();
  });
}

TEST_F(ConnectTest, AFailureDuringTheLookUpIsTheDeadlineOfTheCaller) {
  auto client = client_of({Endpoint::Kind::tls, "nonexistent.invalid", 443});
  run_with({}, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), clock.now());
    // The deadline has passed already, and the name does not exist: either error may come first. The call must neither
    // hang nor crash. The helper thread of the look-up may outlive the test.
    EXPECT_THAT(code_of(response), ::testing::AnyOf(Errc::timeout, Errc::dns));
  });
}

// A listener that accepts no connection. When its queue is full, the kernel drops further attempts.
struct FullBacklog {
  explicit FullBacklog(asio::io_context& context) : full(context) {
    full.open(tcp::v4());
    full.bind(tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    full.listen(0);
    for (int i = 0; i < 4; ++i) {
      queue.emplace_back(context);
      queue.back().open(tcp::v4());
      queue.back().native_non_blocking(true);
      const auto target = full.local_endpoint();
      static_cast<void>(::connect(queue.back().native_handle(), target.data(), static_cast<socklen_t>(target.size())));
    }
  }
  std::uint16_t port() const { return full.local_endpoint().port(); }

  tcp::acceptor full;
  std::vector<Socket> queue;
};

TEST_F(ConnectTest, AFullBacklogMakesConnectTimeOut) {
  FullBacklog full(context);
  http::ClientOptions options;
  options.connect_timeout = 50ms;
  auto client = plain_client(full.port(), options);
  run_with({}, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::unreachable);
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), in(10ms))), Errc::timeout);
  });
}

TEST_F(ConnectTest, ADeadlineNamesTheAddressesThatWereTried) {
  FullBacklog full(context);
  auto client = client_of({Endpoint::Kind::tcp, "localhost", full.port()});
  run_with({}, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), in(200ms));
    EXPECT_EQ(code_of(response), Errc::timeout);
    EXPECT_THAT(response.error().message(), HasSubstr("127.0.0.1: no reaction yet"));
  });
}

// The name has three addresses: one of a server that is off, one without a listener, and one of a working server.
TEST_F(ConnectTest, S74_TheNextAddressIsTriedWhereTheFirstDoesNotReact) {
  FullBacklog full(context);
  const auto dead = asio::ip::address_v4::loopback(), alive = asio::ip::make_address_v4("127.0.0.2");
  tcp::acceptor listener(context, tcp::endpoint(alive, full.port()));
  http::ClientOptions options;
  options.connect_timeout = 50ms;
  Socket socket(context);
  std::vector<http::Trial> trials;
  run_with({}, [&]() -> asio::awaitable<void> {
    const auto began = clock.now();
    const auto connected =
        co_await http::connect_to_any(clock, {Endpoint::Kind::tcp, "kubernetes.example", full.port()}, options,
                                      {dead, asio::ip::address_v6::loopback(), alive}, socket, &trials);
    EXPECT_TRUE(connected) << connected.error().message();
    EXPECT_GE(clock.now() - began, 50ms) << "the first one was waited for";
  });
  EXPECT_EQ(socket.remote_endpoint().address(), alive);
}

// Most addresses of the name are silent, as if the network had only one of two address families. The client must not
// wait for their connect timeout.
TEST_F(ConnectTest, S74_SilentAddressesAreNotWaitedFor) {
  FullBacklog full(context);
  const auto dead = asio::ip::address_v4::loopback(), alive = asio::ip::make_address_v4("127.0.0.2");
  tcp::acceptor listener(context, tcp::endpoint(alive, full.port()));
  http::ClientOptions options;
  options.connect_timeout = 24h;
  options.next_address_after = 10ms;
  Socket socket(context);
  std::vector<http::Trial> trials;
  run_with({}, [&]() -> asio::awaitable<void> {
    const auto connected =
        co_await http::connect_to_any(clock, {Endpoint::Kind::tcp, "kubernetes.example", full.port()}, options,
                                      {dead, dead, dead, alive, dead}, socket, &trials);
    EXPECT_TRUE(connected && *connected == alive);
  });
  EXPECT_EQ(socket.remote_endpoint().address(), alive);
  EXPECT_EQ(trials.size(), 4u) << "nobody is tried any more once one has connected";
}

TEST_F(ConnectTest, S74_TheAddressThatConnectedIsTold) {
  ScriptedPeer peer(context, {wait_for_end});
  std::optional<asio::ip::address> address;
  run_with(peer, [&]() -> asio::awaitable<void> {
    http::Progress progress;
    const auto wire =
        co_await http::dial(clock, {Endpoint::Kind::tcp, "localhost", peer.port()}, nullptr, {}, &progress, &address);
    EXPECT_TRUE(wire) << wire.error().message();
  });
  EXPECT_EQ(address, asio::ip::address_v4::loopback());
}

TEST_F(ConnectTest, S74_WhereNoneReactsEachIsNamed) {
  FullBacklog full(context);
  http::ClientOptions options;
  options.connect_timeout = 20ms;
  Socket socket(context);
  std::vector<http::Trial> trials;
  run_with({}, [&]() -> asio::awaitable<void> {
    const auto connected = co_await http::connect_to_any(
        clock, {Endpoint::Kind::tcp, "kubernetes.example", full.port()}, options,
        {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()}, socket, &trials);
    EXPECT_EQ(code_of(connected), Errc::unreachable);
    EXPECT_THAT(connected.error().message(),
                ::testing::AllOf(HasSubstr("127.0.0.1: no reaction within 0.02 s"), HasSubstr("::1: ")));
  });
}

TEST_F(ConnectTest, S74_AServerThatHasAnAddressOfIPv6Alone) {
  boost::system::error_code none;
  tcp::acceptor probe(context);
  probe.open(tcp::v6(), none);
  if (!none) probe.bind({asio::ip::address_v6::loopback(), 0}, none);
  if (none) GTEST_SKIP() << "THIS MACHINE HAS NO IPv6, so a server of it was not tried: " << none.message();
  const CertificateAuthority authority("Test CA");
  const auto identity = authority.issue({"server", {}, {"::1"}});
  http::ServerOptions options;
  options.address = "::1";
  options.tls = true;
  options.tls_options.client_cert_pem = identity.certificate_pem;
  options.tls_options.client_key_pem = identity.key_pem;
  std::string host;
  const auto server = serve(options, [&](http::Exchange& exchange) -> asio::awaitable<void> {
    host = exchange.request().headers.find("Host").value_or("");
    http::Response response;
    response.status = 200;
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  const auto endpoint = http::parse_endpoint(fmt::format("https://[::1]:{}", server->port()), nullptr);
  ASSERT_TRUE(endpoint);
  http::TlsOptions tls;
  tls.ca_pem = authority.pem();
  auto client = client_of(*endpoint, tls);
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(response) << response.error().message();
  });
  EXPECT_EQ(host, fmt::format("[::1]:{}", server->port()));
}

TEST_F(ConnectTest, AMutePeerIsBoundedByHandshakeTimeoutAndDeadline) {
  ScriptedPeer peer(context, {wait_for_end});
  http::ClientOptions options;
  options.handshake_timeout = 30ms;
  auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", peer.port()}, {}, options);
  run_with(peer, [&]() -> asio::awaitable<void> {
    const auto silent = co_await client->round_trip(get("/"), soon());
    EXPECT_EQ(code_of(silent), Errc::unreachable) << silent.error().message();
    const auto late = co_await client->round_trip(get("/"), in(10ms));
    EXPECT_EQ(code_of(late), Errc::timeout) << late.error().message();
  });
  EXPECT_EQ(peer.connections(), 2);
}

TEST_F(ConnectTest, UnixSocket) {
  const std::string directory = ::testing::TempDir() + "haulout-io-" + std::to_string(::getpid());
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/s";
  using Local = asio::local::stream_protocol;
  Local::acceptor acceptor(context, Local::endpoint(path));
  const auto answer_two = [&]() -> asio::awaitable<void> {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    for (int i = 0; i < 2; ++i) {
      std::string head;
      co_await asio::async_read_until(socket, asio::dynamic_buffer(head), "\r\n\r\n", asio::use_awaitable);
      EXPECT_THAT(head, HasSubstr("Host: localhost\r\n"));
      const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nunix";
      co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
    }
  };
  auto client = client_of({Endpoint::Kind::unix_socket, path, 0});
  run_with({answer_two}, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      const auto response = co_await client->round_trip(get("/"), soon());
      EXPECT_TRUE(response && response->body == "unix");
    }
  });
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace haulout::testing
