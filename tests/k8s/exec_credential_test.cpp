#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "k8s/exec_plugin.hpp"

namespace haulout::k8s {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

const std::string v1 = "client.authentication.k8s.io/v1";

std::string answer(const std::string& status, const std::string& version = v1) {
  return R"({"kind": "ExecCredential", "apiVersion": ")" + version + R"(", "status": )" + status + "}";
}

TEST(ExecCredential, IsReadWhole) {
  const auto token = decode_exec_credential(answer(R"({"token": "t", "expirationTimestamp": null, "new": 1})"), v1);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->token, "t");
  EXPECT_FALSE(token->expiration);
  const auto pair = decode_exec_credential(answer(R"({"clientCertificateData": "C", "clientKeyData": "K"})"), v1);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->client_cert_pem, "C");
  EXPECT_EQ(pair->client_key_pem, "K");
}

// kubectl, too, accepts both JSON and YAML.
TEST(ExecCredential, MayBeYaml) {
  const auto credential = decode_exec_credential(
      "apiVersion: " + v1 +
          "\nkind: ExecCredential\nstatus:\n  token: t\n  expirationTimestamp: 2026-03-01T02:03:04Z\n",
      v1);
  ASSERT_TRUE(credential) << credential.error().message();
  EXPECT_EQ(credential->token, "t");
  EXPECT_TRUE(credential->expiration);
}

TEST(ExecCredential, TimesInEveryFormOfRfc3339) {
  using namespace std::chrono;
  const WallTime expected = sys_days(2026y / 3 / 1) + 2h + 3min + 4s;
  for (const auto* time : {"2026-03-01T02:03:04Z", "2026-03-01t02:03:04.987654321z", "2026-03-01T04:03:04+02:00",
                           "2026-02-28T20:33:04.5-05:30"}) {
    const auto credential =
        decode_exec_credential(answer(std::string(R"({"token": "t", "expirationTimestamp": ")") + time + "\"}"), v1);
    ASSERT_TRUE(credential && credential->expiration) << time;
    EXPECT_EQ(floor<seconds>(*credential->expiration), expected) << time;
  }
}

TEST(ExecCredential, NonsenseIsRefusedWithoutQuotingIt) {
  for (const std::string& output :
       {std::string(), std::string("s3cret"), std::string("[1]"), std::string("{"), std::string("a: [s3cret"),
        std::string("- s3cret"), std::string(R"({"kind": "Secret", "apiVersion": "v1"})"),
        answer(R"({"token": "s3cret"})", "client.authentication.k8s.io/v1beta1"), answer("null"), answer("{}"),
        answer(R"({"token": 5})"), answer(R"({"token": "s3cret\nX-Header: y"})"),
        answer(R"({"clientCertificateData": "s3cret"})"), answer(R"({"clientKeyData": "s3cret"})"),
        answer(R"({"token": "s3cret", "expirationTimestamp": "tomorrow"})"),
        answer(R"({"token": "s3cret", "expirationTimestamp": "2026-02-30T00:00:00Z"})"),
        answer(R"({"token": "s3cret", "expirationTimestamp": "2026-02-03T00:00:00"})")}) {
    const auto credential = decode_exec_credential(output, v1);
    ASSERT_FALSE(credential) << output;
    EXPECT_EQ(credential.error().code(), Errc::unavailable);
    EXPECT_THAT(credential.error().message(), Not(HasSubstr("s3cret")));
  }
}

TEST(ExecInfo, TellsTheClusterOnlyWhenAsked) {
  ExecPlugin plugin;
  plugin.api_version = v1;
  plugin.cluster_info_json = R"({"server":"https://h"})";
  EXPECT_EQ(nlohmann::json::parse(encode_exec_info(plugin, false, "CA")),
            nlohmann::json::parse(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
                                      "spec":{"interactive":false}})"));
  plugin.provide_cluster_info = true;
  EXPECT_EQ(nlohmann::json::parse(encode_exec_info(plugin, true, "CA"))["spec"],
            nlohmann::json::parse(R"({"interactive":true,"cluster":{"server":"https://h",
                                      "certificate-authority-data":"Q0E="}})"));
}

}  // namespace
}  // namespace haulout::k8s
