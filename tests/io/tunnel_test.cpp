// Tests connections through HTTP proxies and SOCKS5 proxies, and the error messages if a proxy refuses.
#include "certificates.hpp"
#include "http/dial.hpp"
#include "io_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using http::Endpoint;
using http::Proxy;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

asio::awaitable<std::string> read_bytes(Socket& socket, std::size_t count) {
  std::string bytes(count, '\0');
  co_await asio::async_read(socket, asio::buffer(bytes), asio::use_awaitable);
  co_return bytes;
}

class TunnelTest : public IoTest {
 protected:
  CertificateAuthority authority{"Test CA"};
  std::string asked;  // the client's request to the proxy

  // Starts an API server. Its clients use a name that only the proxy can resolve.
  std::unique_ptr<http::Server> api() {
    const auto identity = authority.issue({"server", {"api.cluster.test"}, {}});
    http::ServerOptions options;
    options.tls = true;
    options.tls_options.client_cert_pem = identity.certificate_pem;
    options.tls_options.client_key_pem = identity.key_pem;
    return serve(options, [](http::Exchange& exchange) -> asio::awaitable<void> {
      http::Response response;
      response.status = 200;
      response.body = "hello";
      static_cast<void>(co_await exchange.reply(std::move(response)));
    });
  }
  // Copies bytes in both directions until either side closes the connection.
  asio::awaitable<void> relay(Socket& client, std::uint16_t port) {
    Socket server(client.get_executor());
    co_await server.async_connect({asio::ip::address_v4::loopback(), port}, asio::use_awaitable);
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(pump(server, client));
      return pump(client, server);
    });
  }
  static asio::awaitable<void> pump(Socket& from, Socket& to) {
    std::array<char, 4096> some;
    boost::system::error_code failure;
    while (!failure) {
      const auto [ended, bytes] =
          co_await from.async_read_some(asio::buffer(some), asio::as_tuple(asio::use_awaitable));
      failure = ended;
      if (!failure) co_await asio::async_write(to, asio::buffer(some.data(), bytes), asio::use_awaitable);
    }
    to.shutdown(Socket::shutdown_both, failure);
  }

  Result<http::Response> ask(ScriptedPeer& peer, Proxy proxy, http::Server* server = nullptr,
                             Endpoint endpoint = {Endpoint::Kind::tls, "api.cluster.test", 6443},
                             http::ClientOptions options = {}) {
    proxy.host = "127.0.0.1";
    proxy.port = peer.port();
    options.proxy = std::move(proxy);
    http::TlsOptions tls;
    tls.ca_pem = authority.pem();
    auto client = client_of(std::move(endpoint), std::move(tls), options);
    Result<http::Response> outcome;
    std::vector<std::function<asio::awaitable<void>()>> services = {[&] { return peer.run(); }};
    if (server) services.push_back([server] { return server->run(); });
    run_with(std::move(services),
             [&]() -> asio::awaitable<void> { outcome = co_await client->round_trip(get("/"), soon()); });
    return outcome;
  }
  void expect_refused(ScriptedPeer& peer, const Proxy& proxy, Errc code, const ::testing::Matcher<std::string>& words) {
    const auto outcome = ask(peer, proxy);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), code) << outcome.error().message();
    EXPECT_THAT(outcome.error().message(),
                AllOf(HasSubstr("the proxy 127.0.0.1:" + std::to_string(peer.port()) + " (HTTPS_PROXY)"), words,
                      Not(HasSubstr("s3cret"))));
  }
};

const Proxy by_http{Proxy::Kind::http, "", 0, "", "", "HTTPS_PROXY"};
const Proxy by_http_with_password{Proxy::Kind::http, "", 0, "me", "s3cret", "HTTPS_PROXY"};
const Proxy by_socks{Proxy::Kind::socks5, "", 0, "", "", "HTTPS_PROXY"};
const Proxy by_socks_with_password{Proxy::Kind::socks5, "", 0, "me", "s3cret", "HTTPS_PROXY"};

TEST_F(TunnelTest, AnHttpProxyIsAskedByNameAndTlsGoesThrough) {
  const auto server = api();
  ScriptedPeer peer(context, {[&](Socket& socket) -> asio::awaitable<void> {
                      asked = co_await read_head(socket);
                      co_await say(socket, "HTTP/1.1 200 Connection established\r\nX-By: squid\r\n\r\n");
                      co_await relay(socket, server->port());
                    }});
  const auto outcome = ask(peer, by_http, server.get());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->body, "hello");
  EXPECT_EQ(asked, "CONNECT api.cluster.test:6443 HTTP/1.1\r\nHost: api.cluster.test:6443\r\n\r\n");
}

TEST_F(TunnelTest, AnHttpProxyIsToldUserAndPassword) {
  const auto server = api();
  ScriptedPeer peer(context, {[&](Socket& socket) -> asio::awaitable<void> {
                      asked = co_await read_head(socket);
                      co_await say(socket, "HTTP/1.0 200 OK\r\n\r\n");
                      co_await relay(socket, server->port());
                    }});
  const auto outcome = ask(peer, by_http_with_password, server.get());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_THAT(asked, HasSubstr("\r\nProxy-Authorization: Basic bWU6czNjcmV0\r\n"));
}

TEST_F(TunnelTest, WhatAnHttpProxySaysAgainstIt) {
  struct Row {
    const char* answer;
    Errc code;
    const char* words;
  };
  for (const Row& row :
       {Row{"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno", Errc::unavailable,
            "requires a user and a password"},
        Row{"HTTP/1.1 403 Forbidden\r\n\r\n", Errc::unavailable, "answered 403"},
        Row{"HTTP/1.1 502 Bad Gateway\r\n\r\n", Errc::unreachable, "answered with HTTP status 502"},
        Row{"HTTP/1.1 503 Service Unavailable\r\n\r\n<html>", Errc::unreachable, "answered with HTTP status 503"},
        Row{"HTTP/1.1 504 Gateway Timeout\r\n\r\n", Errc::unreachable, "answered with HTTP status 504"},
        Row{"HTTP/1.1 200 OK\r\n\r\nmore", Errc::protocol, "like the expected HTTP proxy"},
        Row{"SSH-2.0-OpenSSH_9.2\r\n\r\n", Errc::protocol, "like the expected HTTP proxy"},
        Row{"HTTP/1.1 200", Errc::unreachable, "closed the connection"}}) {
    ScriptedPeer peer(context, {once(row.answer)});
    expect_refused(peer, by_http, row.code, HasSubstr(row.words));
    context.restart();
  }
  ScriptedPeer endless(context, {once(std::string(20000, 'x'))});
  expect_refused(endless, by_http, Errc::protocol, HasSubstr("like the expected HTTP proxy"));
  context.restart();
  ScriptedPeer strict(context, {once("HTTP/1.1 407 No\r\n\r\n")});
  expect_refused(strict, by_http_with_password, Errc::unavailable, HasSubstr("does not accept"));
}

TEST_F(TunnelTest, AProxyThatIsNotThereIsNamed) {
  tcp::socket occupied{context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  http::ClientOptions options;
  options.proxy = Proxy{Proxy::Kind::http, "127.0.0.1", occupied.local_endpoint().port(), "", "", "HTTPS_PROXY"};
  auto client = client_of({Endpoint::Kind::tls, "api.cluster.test", 6443}, {}, options);
  run_with({}, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_EQ(code_of(response), Errc::unreachable);
    EXPECT_THAT(response.error().message(), AllOf(StartsWith("the proxy 127.0.0.1:"), HasSubstr("connection refused")));
  });
}

TEST_F(TunnelTest, AProxyThatSaysNothingIsGivenUp) {
  for (const Proxy& proxy : {by_http, by_socks}) {
    ScriptedPeer peer(context, {[](Socket& socket) { return wait_for_end(socket); }});
    http::ClientOptions options;
    options.handshake_timeout = 50ms;
    const auto outcome = ask(peer, proxy, nullptr, {Endpoint::Kind::tls, "api.cluster.test", 6443}, options);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::unreachable);
    EXPECT_THAT(outcome.error().message(), HasSubstr("did not connect to api.cluster.test:6443 within 0.05 s"));
    context.restart();
  }
}

TEST_F(TunnelTest, TheNameThatCountsIsTheServers) {
  const auto server = api();
  ScriptedPeer peer(context, {[&](Socket& socket) -> asio::awaitable<void> {
                      co_await read_head(socket);
                      co_await say(socket, "HTTP/1.1 200 OK\r\n\r\n");
                      co_await relay(socket, server->port());
                    }});
  const auto outcome = ask(peer, by_http, server.get(), {Endpoint::Kind::tls, "other.cluster.test", 6443});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Errc::tls);
}

TEST_F(TunnelTest, SocksIsToldNameUserAndPassword) {
  const auto server = api();
  std::string greeting;
  std::string login;
  ScriptedPeer peer(context, {[&](Socket& socket) -> asio::awaitable<void> {
                      greeting = co_await read_bytes(socket, 4);
                      co_await say(socket, "\x05\x02"s);
                      login = co_await read_bytes(socket, 11);
                      co_await say(socket, "\x01\x00"s);
                      asked = co_await read_bytes(socket, 5 + 16 + 2);
                      co_await say(socket, "\x05\x00\x00\x03\x02hi\x12\x34"s);
                      co_await relay(socket, server->port());
                    }});
  const auto outcome = ask(peer, by_socks_with_password, server.get());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->body, "hello");
  EXPECT_EQ(greeting, "\x05\x02\x00\x02"s);
  EXPECT_EQ(login, "\x01\x02me\x06s3cret"s);
  EXPECT_EQ(asked, "\x05\x01\x00\x03\x10"s + "api.cluster.test" + "\x19\x2b"s);
}

// The client does not need the address to which the proxy is bound. It must read all bytes of that address, and no
// more.
TEST_F(TunnelTest, WhateverAddressSocksIsBoundToTlsGoesThrough) {
  for (const std::string& bound :
       {"\x01"s + std::string(4, '\0'), "\x04"s + std::string(16, '\0'), "\x03\x02hi"s, "\x03\x00"s}) {
    const auto server = api();
    ScriptedPeer peer(context, {[&](Socket& socket) -> asio::awaitable<void> {
                        co_await read_bytes(socket, 3);
                        co_await say(socket, "\x05\x00"s);
                        co_await read_bytes(socket, 5 + 16 + 2);
                        co_await say(socket, "\x05\x00\x00"s + bound + "\x12\x34"s);
                        co_await relay(socket, server->port());
                      }});
    const auto outcome = ask(peer, by_socks, server.get());
    EXPECT_TRUE(outcome && outcome->body == "hello") << bound.size();
    context.restart();
  }
}

TEST_F(TunnelTest, SocksIsGivenAddressesAsSuch) {
  for (const auto& [host, request] :
       {std::pair("10.1.2.3", "\x05\x01\x00\x01\x0a\x01\x02\x03\x19\x2b"s),
        std::pair("fd00::1", "\x05\x01\x00\x04\xfd\x00"s + std::string(13, '\0') + "\x01\x19\x2b"s)}) {
    const std::size_t length = request.size();
    ScriptedPeer peer(context, {[&, length](Socket& socket) -> asio::awaitable<void> {
                        co_await read_bytes(socket, 3);
                        co_await say(socket, "\x05\x00"s);
                        asked = co_await read_bytes(socket, length);
                        co_await say(socket, "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"s);
                      }});
    const auto outcome = ask(peer, by_socks, nullptr, {Endpoint::Kind::tls, host, 6443});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::unreachable);
    EXPECT_THAT(outcome.error().message(), HasSubstr("connection refused"));
    EXPECT_EQ(asked, request);
    context.restart();
  }
}

TEST_F(TunnelTest, WhatSocksSaysAgainstIt) {
  const auto refusing = [this](std::string method, std::string reply) {
    return ScriptedPeer(context, {[method, reply](Socket& socket) -> asio::awaitable<void> {
                          co_await read_bytes(socket, 3);
                          co_await say(socket, method);
                          if (reply.empty()) co_return;
                          co_await read_bytes(socket, 5 + 16 + 2);
                          co_await say(socket, reply);
                        }});
  };
  struct Row {
    std::string method, reply;
    Errc code;
    const char* words;
  };
  for (const Row& row :
       {Row{"\x05\xff"s, "", Errc::unavailable, "requires credentials"},
        Row{"\x05\x02"s, "", Errc::unavailable, "requires credentials"},
        Row{"HT"s, "", Errc::protocol, "expected SOCKS5"}, Row{"\x05"s, "", Errc::unreachable, "closed the connection"},
        Row{"\x05\x00"s, "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"s, Errc::unavailable, "rules"},
        Row{"\x05\x00"s, "\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00"s, Errc::unreachable, "host unreachable"},
        Row{"\x05\x00"s, "\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"s, Errc::unavailable, "code 7"},
        Row{"\x05\x00"s, "\x05\x00\x00\x01"s, Errc::unreachable, "closed the connection"}}) {
    ScriptedPeer peer = refusing(row.method, row.reply);
    expect_refused(peer, by_socks, row.code, HasSubstr(row.words));
    context.restart();
  }
}

}  // namespace
}  // namespace haulout::testing
