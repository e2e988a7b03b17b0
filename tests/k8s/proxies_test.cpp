#include "k8s/credentials.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::k8s {
namespace {

using http::Proxy;
using ::testing::HasSubstr;
using ::testing::Not;

Environment with(std::map<std::string, std::string> variables) {
  Environment environment;
  environment.variables = std::move(variables);
  return environment;
}

Connection to_api() {
  Connection connection;
  connection.endpoint = {http::Endpoint::Kind::tls, "api.corp.example", 6443};
  return connection;
}

TEST(ChooseProxy, FromTheEnvironmentAsGoWould) {
  using Kind = http::Endpoint::Kind;
  struct Row {
    const char* host;
    const char* no_proxy;
    bool proxied;
    Kind kind = Kind::tls;
  };
  for (const Row& row : {Row{"api.corp.example", "", true},
                         Row{"api.corp.example", "", false, Kind::tcp},
                         Row{"localhost", "", false},
                         Row{"127.0.0.2", "", false},
                         Row{"::1", "", false},
                         Row{"api.corp.example", "*", false},
                         Row{"API.corp.example", "other, corp.EXAMPLE", false},
                         Row{"api.corp.example", ".corp.example", false},
                         Row{"api.corp.example", "*.corp.example", false},
                         Row{"corp.example", ".corp.example", true},
                         Row{"notcorp.example", "corp.example", true},
                         Row{"api.corp.example", "api.corp.example:6443", false},
                         Row{"api.corp.example", "api.corp.example:443", true},
                         Row{"10.1.2.3", "10.0.0.0/8", false},
                         Row{"10.1.2.3", "10.0.0.0/16", true},
                         Row{"10.1.2.3", "10.1.2.3:6443", false},
                         Row{"fd00::1", "10.0.0.0/8,fd00::/8", false},
                         Row{"fd00::1", "[fd00::1]:6443", false},
                         Row{"fd00::1", "fd00::2", true},
                         Row{"10.1.2.3", ":,/,[,]:6443,", true}}) {
    Connection connection;
    connection.endpoint = {row.kind, row.host, 6443};
    ASSERT_TRUE(choose_proxy(connection, with({{"https_proxy", "http://squid:3128"}, {"NO_PROXY", row.no_proxy}})));
    EXPECT_EQ(connection.proxy.has_value(), row.proxied) << row.host << " with NO_PROXY=" << row.no_proxy;
    if (row.proxied) EXPECT_EQ(*connection.proxy, (Proxy{Proxy::Kind::http, "squid", 3128, "", "", "https_proxy"}));
  }
}

TEST(ChooseProxy, TheUpperCaseOneComesFirst) {
  Connection connection = to_api();
  ASSERT_TRUE(choose_proxy(connection, with({{"HTTPS_PROXY", "socks5://upper"}, {"https_proxy", "http://lower"}})));
  EXPECT_EQ(connection.proxy->origin, "HTTPS_PROXY");
  EXPECT_EQ(connection.proxy->kind, Proxy::Kind::socks5);
}

TEST(ChooseProxy, WithoutOneItIsReachedDirectly) {
  Connection connection = to_api();
  ASSERT_TRUE(choose_proxy(connection, with({{"HTTP_PROXY", "http://for-others"}})));
  EXPECT_FALSE(connection.proxy);
}

TEST(ChooseProxy, TheKubeconfigsOwnKnowsNoExceptions) {
  Connection connection = to_api();
  connection.proxy = Proxy{Proxy::Kind::socks5, "bastion", 1080, "", "", "proxy-url"};
  ASSERT_TRUE(choose_proxy(connection, with({{"HTTPS_PROXY", "http://squid"}, {"NO_PROXY", "*"}})));
  EXPECT_EQ(connection.proxy->host, "bastion");
}

TEST(ChooseProxy, NonsenseIsAnErrorWithoutItsSecrets) {
  Connection connection = to_api();
  const auto chosen = choose_proxy(connection, with({{"HTTPS_PROXY", "https://u:s3cret@squid"}}));
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), Errc::unavailable);
  EXPECT_THAT(chosen.error().message(), HasSubstr("HTTPS_PROXY: "));
  EXPECT_THAT(chosen.error().message(), Not(HasSubstr("s3cret")));
}

// Commands and agents choose the proxy in the same way.
TEST(ChooseProxy, IsPartOfDiscovery) {
  haulout::testing::TempDir dir;
  const auto file = [&](const std::string& more) {
    return dir.write("config", "current-context: c\nclusters: [{name: c, cluster: {server: 'https://api:6443'" + more +
                                   "}}]\ncontexts: [{name: c, context: {cluster: c}}]\n");
  };
  const Environment environment = with({{"HTTPS_PROXY", "http://squid:3128"}});
  ConnectionFlags flags;
  for (const auto& [more, host] : {std::pair("", "squid"), std::pair(", proxy-url: 'socks5://bastion'", "bastion")}) {
    flags.kubeconfig = file(more);
    const auto connection = discover(flags, environment);
    ASSERT_TRUE(connection) << connection.error().message();
    ASSERT_TRUE(connection->proxy);
    EXPECT_EQ(connection->proxy->host, host);
    const auto of_agent = discover_for_agent(flags.kubeconfig, environment, {});
    ASSERT_TRUE(of_agent) << of_agent.error().message();
    EXPECT_EQ(of_agent->proxy, connection->proxy);
  }
}

}  // namespace
}  // namespace haulout::k8s
