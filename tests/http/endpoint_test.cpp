#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/client.hpp"

namespace haulout::http {
namespace {

using ::testing::HasSubstr;
using Kind = Endpoint::Kind;

struct Good {
  const char* url;
  Kind kind;
  const char* host;
  std::uint16_t port;
  const char* prefix;
  const char* authority;
};

class GoodEndpoint : public ::testing::TestWithParam<Good> {};

TEST_P(GoodEndpoint, IsTakenApart) {
  const auto& expected = GetParam();
  std::string prefix = "left over";
  const auto parsed = parse_endpoint(expected.url, &prefix);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->kind, expected.kind);
  EXPECT_EQ(parsed->host, expected.host);
  EXPECT_EQ(parsed->port, expected.port);
  EXPECT_EQ(prefix, expected.prefix);
  EXPECT_EQ(parsed->authority(), expected.authority);
}

INSTANTIATE_TEST_SUITE_P(
    Urls, GoodEndpoint,
    ::testing::Values(Good{"https://10.0.0.1:6443", Kind::tls, "10.0.0.1", 6443, "", "10.0.0.1:6443"},
                      Good{"https://api.example.com", Kind::tls, "api.example.com", 443, "", "api.example.com"},
                      Good{"https://api.example.com/", Kind::tls, "api.example.com", 443, "", "api.example.com"},
                      Good{"HTTPS://api.example.com:", Kind::tls, "api.example.com", 443, "", "api.example.com"},
                      Good{"http://localhost:8080", Kind::tcp, "localhost", 8080, "", "localhost:8080"},
                      Good{"http://localhost", Kind::tcp, "localhost", 80, "", "localhost"},
                      Good{"https://[fd00::1]:6443", Kind::tls, "fd00::1", 6443, "", "[fd00::1]:6443"},
                      Good{"https://r/k8s/clusters/c-1/", Kind::tls, "r", 443, "/k8s/clusters/c-1", "r"},
                      Good{"unix:/run/haulout.sock", Kind::unix_socket, "/run/haulout.sock", 0, "", "localhost"},
                      Good{"unix:///run/haulout.sock", Kind::unix_socket, "/run/haulout.sock", 0, "", "localhost"}));

class BadEndpoint : public ::testing::TestWithParam<const char*> {};

TEST_P(BadEndpoint, IsRefused) {
  std::string prefix;
  const auto parsed = parse_endpoint(GetParam(), &prefix);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code(), Errc::invalid);
}

INSTANTIATE_TEST_SUITE_P(Urls, BadEndpoint,
                         ::testing::Values("", "10.0.0.1:6443", "api.example.com", "ftp://x", "https://",
                                           "https://:6443", "https://x:0", "https://x:65536", "https://x:99999",
                                           "https://x:4294967739", "https://x:port", "https://x?y=z",
                                           "https://user:secret@x", "https://a b", "unix:relative", "unix:"));

TEST(Endpoint, AWrongPortIsNamed) {
  for (const char* url :
       {"https://x:0", "https://x:65536", "https://x:port", "https://[fd00::1]:port", "https://x:6443x/y"})
    EXPECT_THAT(parse_endpoint(url, nullptr).error().message(), HasSubstr("the port must be a number")) << url;
  for (const char* url : {"https://a b", "https://a b:443", "https://[fd00::port]", "10.0.0.1:6443"})
    EXPECT_THAT(parse_endpoint(url, nullptr).error().message(), HasSubstr("must look like https://host:port")) << url;
}

TEST(Endpoint, ThePrefixMayBeUnwanted) {
  EXPECT_TRUE(parse_endpoint("https://x/y", nullptr));
}

}  // namespace
}  // namespace haulout::http
