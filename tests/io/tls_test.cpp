// Tests credentials, and the data on a TLS connection.
#include "tls_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using http::Endpoint;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TlsTest, AClientCertificateIsPresented) {
  CertificateAuthority clients("Client CA");
  auto options = server_options(loopback);
  options.tls_options.ca_pem = clients.pem();
  const auto server = serve(options, greet);
  auto tls = trusting();
  const auto without = ask(*server, tls);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code(), Errc::tls) << without.error().message();
  EXPECT_THAT(without.error().message(), HasSubstr("client certificate"));

  context.restart();
  const auto stranger = authority.issue({"system:node:n1", {}, {}});
  tls.client_cert_pem = stranger.certificate_pem;
  tls.client_key_pem = stranger.key_pem;
  expect_refused(*server, tls, HasSubstr("certificate"));

  context.restart();
  const auto known = clients.issue({"system:node:n1", {}, {}});
  tls.client_cert_pem = known.certificate_pem;
  tls.client_key_pem = known.key_pem;
  const auto with = ask(*server, tls);
  ASSERT_TRUE(with) << with.error().message();
}

TEST_F(TlsTest, BadPemIsFoundAtOnce) {
  const auto one = authority.issue(loopback);
  const auto two = authority.issue(loopback);
  std::vector<http::TlsOptions> bad(6);
  bad[0].ca_pem = "nonsense";
  bad[1].ca_pem = authority.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  bad[2].client_cert_pem = "nonsense";
  bad[3].client_cert_pem = one.certificate_pem;  // without a key
  bad[4].client_cert_pem = one.certificate_pem;
  bad[4].client_key_pem = "nonsense";
  bad[5].client_cert_pem = one.certificate_pem;
  bad[5].client_key_pem = two.key_pem;
  for (const auto& tls : bad) {
    const auto made = http::Client::create(context.get_executor(), clock, {Endpoint::Kind::tls, "h", 1}, tls);
    EXPECT_EQ(code_of(made), Errc::tls);
  }
  http::TlsOptions good;
  good.ca_pem = authority.pem() + CertificateAuthority("second").pem();
  good.client_cert_pem = one.certificate_pem + authority.pem();
  good.client_key_pem = one.key_pem;
  EXPECT_TRUE(http::Client::create(context.get_executor(), clock, {Endpoint::Kind::tls, "h", 1}, good));
}

TEST_F(TlsTest, CommonNameOfTheFirstCertificate) {
  const auto identity = authority.issue({"system:node:n1", {}, {}});
  EXPECT_EQ(http::certificate_common_name(identity.certificate_pem + authority.pem()), "system:node:n1");
  EXPECT_EQ(http::certificate_common_name("nonsense"), "");
}

TEST_F(TlsTest, NewCredentialsReplaceIdleConnections) {
  const auto server = server_with(loopback);
  auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", server->port()}, trusting());
  run_with(*server, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    http::TlsOptions nonsense;
    nonsense.ca_pem = "nonsense";
    EXPECT_FALSE(client->set_tls(nonsense));
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    http::TlsOptions other;
    other.ca_pem = CertificateAuthority("Other CA").pem();
    EXPECT_TRUE(client->set_tls(other));
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::tls);
    EXPECT_TRUE(client->set_tls(trusting()));
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
}

TEST_F(TlsTest, SeveralConnectionsOneAfterTheOther) {
  // From the second connection on, there is a session to resume.
  const auto server = server_with(loopback);
  http::ClientOptions options;
  options.max_idle = 0;
  auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", server->port()}, trusting(), options);
  run_with(*server, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 5; ++i) {
      const auto response = co_await client->round_trip(get("/"), soon());
      EXPECT_TRUE(response && response->body == "hello");
    }
  });
}

TEST_F(TlsTest, APlainHttpServerOnTheHttpsPort) {
  ScriptedPeer peer(context, {[](Socket& socket) -> asio::awaitable<void> {
                      co_await say(socket, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
                      co_await wait_for_end(socket);
                    }});
  auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", peer.port()}, trusting());
  run_with(peer, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_EQ(code_of(response), Errc::tls);
    EXPECT_THAT(response.error().message(), HasSubstr("http://"));
  });
}

TEST_F(TlsTest, PlainHttpToTheHttpsPortIsToldSo) {
  const auto server = server_with(loopback);
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(response && response->status == 400);
  });
}

TEST_F(TlsTest, APeerThatLeavesDuringTheHandshakeIsAReset) {
  ScriptedPeer peer(context, {[](Socket& socket) -> asio::awaitable<void> {
                      std::array<char, 4096> hello;
                      co_await socket.async_read_some(asio::buffer(hello), asio::use_awaitable);
                    }});
  auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", peer.port()}, trusting());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::reset);
  });
}

// Fixture for the client's first message (ClientHello), which is not encrypted.
class TlsHelloTest : public TlsTest {
 protected:
  std::string hello_of(http::TlsOptions tls) {
    std::string hello;
    ScriptedPeer peer(context, {[&](Socket& socket) -> asio::awaitable<void> {
                        std::array<char, 4096> bytes;
                        const auto size = co_await socket.async_read_some(asio::buffer(bytes), asio::use_awaitable);
                        hello.assign(bytes.data(), size);
                      }});
    auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", peer.port()}, std::move(tls));
    run_with(peer, [&]() -> asio::awaitable<void> { EXPECT_FALSE(co_await client->round_trip(get("/"), soon())); });
    return hello;
  }
};

TEST_F(TlsHelloTest, OffersHttp11AndNothingElse) {
  EXPECT_THAT(hello_of(trusting()), HasSubstr(std::string("\x00\x09\x08http/1.1", 11)));
}

TEST_F(TlsHelloTest, NamesTheServerUnlessItIsAnAddress) {
  EXPECT_THAT(hello_of(trusting()), Not(HasSubstr("127.0.0.1")));
  context.restart();
  auto tls = trusting();
  tls.server_name = "api.test";
  EXPECT_THAT(hello_of(tls), HasSubstr("api.test"));
}

TEST_F(TlsTest, LargeBodiesAndStreams) {
  const std::string large(3'000'000, 'l');
  const auto server = serve(server_options(loopback), [&](http::Exchange& exchange) -> asio::awaitable<void> {
    if (exchange.request().target == "/whole") {
      http::Response response{200, {}, large};
      EXPECT_TRUE(co_await exchange.reply(std::move(response)));
      co_return;
    }
    EXPECT_TRUE(co_await exchange.start_stream({200, {}}));
    for (std::size_t at = 0; at < large.size(); at += 77'777)
      EXPECT_TRUE(co_await exchange.write(large.substr(at, 77'777)));
    EXPECT_TRUE(co_await exchange.end());
  });
  auto client = client_of({Endpoint::Kind::tls, "127.0.0.1", server->port()}, trusting());
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto whole = co_await client->round_trip(get("/whole"), soon());
    EXPECT_TRUE(whole && whole->body == large);
    auto stream = co_await client->open(get("/stream"), soon());
    EXPECT_TRUE(stream);
    std::string all;
    while (true) {
      const auto piece = co_await (*stream)->read_some(soon());
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) break;
      all += *piece;
    }
    EXPECT_TRUE(all == large);
  });
}

}  // namespace
}  // namespace haulout::testing
