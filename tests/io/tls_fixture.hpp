// Fixture with a server and a client that use TLS on loopback, with certificates made in memory.
#pragma once

#include "certificates.hpp"
#include "io_fixture.hpp"

namespace haulout::testing {

class TlsTest : public IoTest {
 protected:
  CertificateAuthority authority{"Test CA"};

  http::ServerOptions server_options(const CertificateSpec& spec) const {
    const auto identity = authority.issue(spec);
    http::ServerOptions options;
    options.tls = true;
    options.tls_options.client_cert_pem = identity.certificate_pem;
    options.tls_options.client_key_pem = identity.key_pem;
    return options;
  }
  std::unique_ptr<http::Server> server_with(const CertificateSpec& spec) { return serve(server_options(spec), greet); }
  http::TlsOptions trusting() const {
    http::TlsOptions tls;
    tls.ca_pem = authority.pem();
    return tls;
  }
  static asio::awaitable<void> greet(http::Exchange& exchange) {
    http::Response response;
    response.status = 200;
    response.body = "hello";
    const auto sent = co_await exchange.reply(std::move(response));
    static_cast<void>(sent);
  }
  // Sends one request and returns its result.
  Result<http::Response> ask(http::Server& server, http::TlsOptions tls, const std::string& host = "127.0.0.1") {
    auto client = client_of({http::Endpoint::Kind::tls, host, server.port()}, std::move(tls));
    Result<http::Response> outcome;
    run_with(server, [&]() -> asio::awaitable<void> { outcome = co_await client->round_trip(get("/"), soon()); });
    return outcome;
  }
  void expect_refused(http::Server& server, http::TlsOptions tls, const ::testing::Matcher<std::string>& message,
                      const std::string& host = "127.0.0.1") {
    const auto outcome = ask(server, std::move(tls), host);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::tls) << outcome.error().message();
    // The contract includes what a message must name, but not its wording.
    EXPECT_THAT(outcome.error().message(),
                ::testing::AllOf(::testing::HasSubstr(host + ":" + std::to_string(server.port())), message));
  }
};

inline const CertificateSpec loopback{"server", {}, {"127.0.0.1"}};

}  // namespace haulout::testing
