// Errors that AuthTransport::create() returns, with the real HTTP client.
#include "k8s/auth_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <boost/asio/io_context.hpp>

#include "sim/virtual_clock.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::k8s {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Pair {
  std::string certificate, key;
};

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

Pair self_signed() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  BIO* certificate_text = BIO_new(BIO_s_mem());
  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate);
  PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {text_of(certificate_text), text_of(key_text)};
}

class AuthTransportTest : public ::testing::Test {
 protected:
  boost::asio::io_context context{1};
  sim::VirtualClock clock{context};
  haulout::testing::TempDir dir;
  Connection connection;

  AuthTransportTest() {
    connection.origin = "kubeconfig f";
    connection.endpoint.host = "127.0.0.1";
  }
  std::string refusal() {
    auto transport = AuthTransport::create(context.get_executor(), clock, connection, "haulout/test");
    if (transport) return "none";
    EXPECT_EQ(transport.error().code(), Errc::unavailable);
    return transport.error().message();
  }
};

TEST_F(AuthTransportTest, APairThatBelongsTogetherIsTaken) {
  const Pair pair = self_signed();
  connection.client_cert.file = dir.write("cert", pair.certificate);
  connection.client_key.data = pair.key;
  connection.ca.data = pair.certificate;
  EXPECT_EQ(refusal(), "none");
}

TEST_F(AuthTransportTest, APairThatDoesNotIsRefusedByName) {
  connection.client_cert.file = dir.write("cert", self_signed().certificate);
  connection.client_key.file = dir.write("key", self_signed().key);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("kubeconfig f"), HasSubstr(dir / "cert"), HasSubstr(dir / "key"),
                               HasSubstr("belong together"), Not(HasSubstr("PRIVATE"))));
}

TEST_F(AuthTransportTest, WhatIsNoPemIsRefusedByName) {
  connection.ca.file = dir.write("ca", "s3cret");
  EXPECT_THAT(refusal(), AllOf(HasSubstr(dir / "ca"), Not(HasSubstr("s3cret"))));
}

TEST_F(AuthTransportTest, AMissingFileIsNamed) {
  connection.client_cert.data = "x";
  connection.client_key.file = dir / "missing";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("client key " + (dir / "missing")), HasSubstr("No such file")));
}

}  // namespace
}  // namespace haulout::k8s
