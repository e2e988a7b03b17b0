// Tests which handshakes resume the previous session, in memory and without sockets.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>

#include "certificates.hpp"
#include "http/tls_context.hpp"

namespace haulout::testing {
namespace {

using http::TlsContext;

class TlsSessionTest : public ::testing::Test {
 protected:
  const CertificateAuthority authority{"Test CA"};

  std::shared_ptr<TlsContext> server_with(const CertificateSpec& spec) const {
    const auto identity = authority.issue(spec);
    http::TlsOptions options;
    options.client_cert_pem = identity.certificate_pem;
    options.client_key_pem = identity.key_pem;
    return *TlsContext::for_server(options);
  }
  std::shared_ptr<TlsContext> client() const {
    http::TlsOptions options;
    options.ca_pem = authority.pem();
    return *TlsContext::for_client(options);
  }
  // Makes one connection, up to the session tickets after the handshake. Returns true if it has resumed a session.
  static bool resumes(const TlsContext& client, const TlsContext& server) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> near(SSL_new(client.native()), SSL_free);
    const std::unique_ptr<SSL, decltype(&SSL_free)> far(SSL_new(server.native()), SSL_free);
    BIO* near_end = nullptr;
    BIO* far_end = nullptr;
    BIO_new_bio_pair(&near_end, 0, &far_end, 0);
    SSL_set_bio(near.get(), near_end, near_end);
    SSL_set_bio(far.get(), far_end, far_end);
    SSL_set_connect_state(near.get());
    SSL_set_accept_state(far.get());
    SSL_set_verify(near.get(), SSL_VERIFY_NONE, nullptr);
    client.offer_session(near.get());
    for (int step = 0; step < 10; ++step) {
      SSL_do_handshake(near.get());
      SSL_do_handshake(far.get());
    }
    EXPECT_TRUE(SSL_is_init_finished(near.get()) && SSL_is_init_finished(far.get()));
    char nothing = 0;
    SSL_read(near.get(), &nothing, 1);
    const bool resumed = SSL_session_reused(near.get()) == 1;
    SSL_shutdown(near.get());
    SSL_shutdown(far.get());
    return resumed;
  }
};

TEST_F(TlsSessionTest, TheSecondHandshakeResumesTheFirst) {
  const auto server = server_with({});
  const auto ours = client();
  EXPECT_FALSE(resumes(*ours, *server));
  EXPECT_TRUE(resumes(*ours, *server));
  EXPECT_TRUE(resumes(*ours, *server));
}

TEST_F(TlsSessionTest, WhatIsForgottenIsNotResumed) {
  const auto server = server_with({});
  const auto ours = client();
  resumes(*ours, *server);
  ours->forget_session();
  EXPECT_FALSE(resumes(*ours, *server));
}

// The certificate of a resumed session would not be verified again.
TEST_F(TlsSessionTest, ASessionWhoseCertificateHasExpiredIsNotResumed) {
  CertificateSpec expired;
  expired.valid_until = -60;
  const auto server = server_with(expired);
  const auto ours = client();
  resumes(*ours, *server);
  EXPECT_FALSE(resumes(*ours, *server));
}

}  // namespace
}  // namespace haulout::testing
