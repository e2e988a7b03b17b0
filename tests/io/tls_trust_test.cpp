// Tests which certificates are accepted and which are refused, and the error messages.
#include "tls_fixture.hpp"

namespace haulout::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(TlsTest, AnAddressInTheCertificateIsEnough) {
  const auto server = server_with(loopback);
  const auto outcome = ask(*server, trusting());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->body, "hello");
}

TEST_F(TlsTest, AHostNameInTheCertificateIsEnough) {
  const auto server = server_with({"server", {"other.test", "localhost"}, {}});
  const auto outcome = ask(*server, trusting(), "localhost");
  ASSERT_TRUE(outcome) << outcome.error().message();
}

TEST_F(TlsTest, ServerNameReplacesTheHost) {
  const auto server = server_with({"server", {"api.test"}, {}});
  auto tls = trusting();
  tls.server_name = "api.test";
  const auto outcome = ask(*server, tls);
  ASSERT_TRUE(outcome) << outcome.error().message();
}

TEST_F(TlsTest, AnotherCaIsRefused) {
  const auto server = server_with(loopback);
  http::TlsOptions tls;
  tls.ca_pem = CertificateAuthority("Other CA").pem();
  expect_refused(*server, tls, HasSubstr("CA"));
}

// The CA of a cluster was replaced by another CA with the same name, and the bundle contains both. No key identifiers
// distinguish them, so the client must try both.
TEST_F(TlsTest, OfTwoCasOfOneNameTheOneThatSignedIsFound) {
  const auto server = server_with(loopback);
  const std::string other = CertificateAuthority("Test CA").pem();
  for (const std::string& bundle : {authority.pem() + other, other + authority.pem()}) {
    http::TlsOptions tls;
    tls.ca_pem = bundle;
    const auto outcome = ask(*server, tls);
    EXPECT_TRUE(outcome) << outcome.error().message();
    context.restart();
  }
  http::TlsOptions tls;
  tls.ca_pem = other;
  expect_refused(*server, tls, HasSubstr("CA"));
}

TEST_F(TlsTest, OfTwoClientCasOfOneNameTheOneThatSignedIsFound) {
  const CertificateAuthority signer("Client CA");
  const std::string other = CertificateAuthority("Client CA").pem();
  const auto client = signer.issue({"system:node:n1", {}, {}});
  for (const std::string& bundle : {signer.pem() + other, other + signer.pem()}) {
    auto options = server_options(loopback);
    options.tls_options.ca_pem = bundle;
    const auto server = serve(options, greet);
    auto tls = trusting();
    tls.client_cert_pem = client.certificate_pem;
    tls.client_key_pem = client.key_pem;
    const auto outcome = ask(*server, tls);
    EXPECT_TRUE(outcome) << outcome.error().message();
    context.restart();
  }
}

TEST_F(TlsTest, TheSystemDoesNotKnowOurCa) {
  const auto server = server_with(loopback);
  expect_refused(*server, {}, HasSubstr("certificate-authority"));
}

TEST_F(TlsTest, AWrongNameIsRefusedAndTheRightOnesAreNamed) {
  const auto server = server_with({"localhost", {"api.test", "*.pods.test"}, {"10.96.0.1", "fd00::1"}});
  expect_refused(*server, trusting(),
                 AllOf(HasSubstr("api.test"), HasSubstr("*.pods.test"), HasSubstr("10.96.0.1"), HasSubstr("fd00::1"),
                       HasSubstr("tls-server-name")));
  context.restart();
  // The host is the common name of the certificate, which the client ignores.
  expect_refused(*server, trusting(), HasSubstr("api.test"), "localhost");
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  auto spec = loopback;
  spec.valid_from = -7200;
  spec.valid_until = -3600;
  const auto server = server_with(spec);
  expect_refused(*server, trusting(), HasSubstr("expired"));
}

TEST_F(TlsTest, ACertificateFromTheFutureIsRefused) {
  auto spec = loopback;
  spec.valid_from = 3600;
  spec.valid_until = 7200;
  const auto server = server_with(spec);
  expect_refused(*server, trusting(), HasSubstr("clock"));
}

TEST_F(TlsTest, NothingIsVerifiedWhenAskedNotTo) {
  auto spec = CertificateSpec{"server", {"api.test"}, {}};
  spec.valid_until = -1;
  const auto server = server_with(spec);
  http::TlsOptions tls;
  tls.verify = false;
  const auto outcome = ask(*server, tls);
  ASSERT_TRUE(outcome) << outcome.error().message();
}

TEST_F(TlsTest, TheServersOwnCertificateMayBeTheBundle) {
  const auto options = server_options(loopback);
  const auto server = serve(options, greet);
  http::TlsOptions tls;
  tls.ca_pem = options.tls_options.client_cert_pem;
  const auto outcome = ask(*server, tls);
  ASSERT_TRUE(outcome) << outcome.error().message();
}

// The client checks the purpose of a certificate as Go does. Only the extended key usage counts, if it is given. This
// applies to the server's certificate and to those above it.
TEST_F(TlsTest, ACertificateForServersOrForAnythingIsBelieved) {
  for (const char* usage : {"serverAuth", "clientAuth,serverAuth", "anyExtendedKeyUsage"}) {
    auto spec = loopback;
    spec.extended_key_usage = usage;
    spec.key_usage = "critical,keyAgreement";
    const auto server = server_with(spec);
    const auto outcome = ask(*server, trusting());
    EXPECT_TRUE(outcome) << usage << ": " << outcome.error().message();
    context.restart();
  }
}

TEST_F(TlsTest, ACertificateForSomethingElseIsRefused) {
  for (const char* usage : {"clientAuth", "nsSGC", "msSGC", "1.3.6.1.4.1.99999.1"}) {
    auto spec = loopback;
    spec.extended_key_usage = usage;
    const auto server = server_with(spec);
    expect_refused(*server, trusting(), AllOf(HasSubstr("serverAuth"), HasSubstr("extended key usage")));
    context.restart();
  }
}

// The server's certificate is also the CA, as `openssl req -x509` and small clusters make it.
TEST_F(TlsTest, ACaThatIsTheServerItselfMayBeTheBundle) {
  auto spec = loopback;
  spec.basic_constraints = "critical,CA:TRUE";
  spec.key_usage = "critical,keyCertSign,cRLSign";
  const auto identity = self_signed(spec);
  auto options = server_options(loopback);
  options.tls_options.client_cert_pem = identity.certificate_pem;
  options.tls_options.client_key_pem = identity.key_pem;
  const auto server = serve(options, greet);
  http::TlsOptions tls;
  tls.ca_pem = identity.certificate_pem;
  const auto outcome = ask(*server, tls);
  EXPECT_TRUE(outcome) << outcome.error().message();
}

TEST_F(TlsTest, WhoSignsMustBeAnAuthority) {
  const struct {
    const char* basic_constraints;
    const char* key_usage;
    const char* extended_key_usage;
    bool believed;
  } cases[] = {
      {"critical,CA:TRUE", "critical,keyCertSign", "", true},
      {"critical,CA:TRUE", "critical,keyCertSign", "serverAuth", true},
      {"critical,CA:TRUE", "", "anyExtendedKeyUsage", true},
      {"critical,CA:TRUE", "critical,keyCertSign", "clientAuth", false},
      {"critical,CA:TRUE", "critical,digitalSignature", "", false},
      {"critical,CA:FALSE", "critical,keyCertSign", "", false},
      {"", "", "", false},
  };
  for (const auto& one : cases) {
    CertificateSpec between{"between", {}, {}};
    between.basic_constraints = one.basic_constraints;
    between.key_usage = one.key_usage;
    between.extended_key_usage = one.extended_key_usage;
    const auto signer = authority.issue_authority(between);
    const auto identity = signer.issue(loopback);
    auto options = server_options(loopback);
    options.tls_options.client_cert_pem = identity.certificate_pem + signer.pem();
    options.tls_options.client_key_pem = identity.key_pem;
    const auto server = serve(options, greet);
    const auto outcome = ask(*server, trusting());
    EXPECT_EQ(outcome.has_value(), one.believed)
        << one.basic_constraints << " " << one.key_usage << " " << one.extended_key_usage;
    if (!outcome) EXPECT_EQ(outcome.error().code(), Errc::tls) << outcome.error().message();
    context.restart();
  }
}

}  // namespace
}  // namespace haulout::testing
