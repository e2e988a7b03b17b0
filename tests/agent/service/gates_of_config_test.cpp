// Tests the gates that a configuration creates, and the connection to a Prometheus on loopback.
#include <fmt/format.h>

#include "agent/service/options_of_config.hpp"

#include "tests/io/certificates.hpp"
#include "tests/io/io_fixture.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GatesOfConfigTest, TakeWhatTheOptionsSay) {
  AgentConfig config;
  config.ns = "ops";
  config.windows = {"Sat 01:00+4h Europe/Berlin"};
  config.blackouts = {"2026-12-20..2027-01-03"};
  config.blocking_pod_selectors = {"app=batch"};
  config.max_reboots_per_day = 2;
  config.prometheus_query = "up == 0";
  config.prometheus_fail_mode = FailMode::open;
  config.prometheus_max_age = 1h;
  config.prometheus_username = "joe";
  config.prometheus_password_file = "/p";
  const auto options = gates_of_config(config, "n1", [](const k8s::Node&) { return OwnPool{"web", "pool=web"}; });
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->node, "n1");
  EXPECT_EQ(options->ns, "ops");
  EXPECT_EQ(options->own_pool({}), (OwnPool{"web", "pool=web"}));
  EXPECT_FALSE(options->schedule.always());
  EXPECT_THAT(options->blocking_pod_selectors, ElementsAre("app=batch"));
  EXPECT_EQ(options->reboots_per_day, 2u);
  EXPECT_FALSE(options->installs);
  EXPECT_EQ(options->pin, "");
  EXPECT_EQ(options->halt_after, 1u) << "the first failed node closes the gate";
  config.halt_after = 3;
  EXPECT_EQ(gates_of_config(config, "n1", {})->halt_after, 3u);
  config.update = UpdateChoice::before_drain;
  config.pin = "2";
  EXPECT_EQ(gates_of_config(config, "n1", {})->pin, "2");
  EXPECT_TRUE(gates_of_config(config, "n1", {})->installs);
  EXPECT_EQ(options->alerts.query, "up == 0");
  EXPECT_TRUE(options->alerts.fail_open);
  EXPECT_EQ(options->alerts.max_age, Duration(1h));
  EXPECT_EQ(options->alerts.username + options->alerts.password_file, "joe/p");
}

TEST(GatesOfConfigTest, AWindowThatCannotBeUsedIsNamed) {
  AgentConfig config;
  config.windows = {"22:00+4h", "Snu 01:00"};
  EXPECT_THAT(gates_of_config(config, "n1", {}).error().message(), HasSubstr("--window \"Snu 01:00\": character 1: "));
  config.windows.clear();
  config.blackouts = {"2026-13-01"};
  EXPECT_THAT(gates_of_config(config, "n1", {}).error().message(), HasSubstr("--blackout \"2026-13-01\": "));
}

struct PrometheusTransport : haulout::testing::IoTest {
  std::unique_ptr<k8s::AuthTransport> transport() {
    auto made = prometheus_transport(context.get_executor(), clock, config, "haulout/1");
    if (!made) throw std::runtime_error(made.error().message());
    return *std::move(made);
  }
  AgentConfig config;
  haulout::testing::TempDir dir;
};

TEST_F(PrometheusTransport, IsNoneWithoutAUrl) {
  EXPECT_EQ(transport(), nullptr);
}

TEST_F(PrometheusTransport, AMissingFileIsNamedAtTheStart) {
  config.prometheus_url = "https://127.0.0.1:1/prom";
  config.prometheus_ca_file = "/no/such/ca.pem";
  const auto made = prometheus_transport(context.get_executor(), clock, config, "haulout/1");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("/no/such/ca.pem"));
}

// The token file is replaced after the client has read it. When Prometheus refuses the old token, the client reads the
// file again.
TEST_F(PrometheusTransport, SpeaksTlsWithACertificateAndATokenThatRotates) {
  const haulout::testing::CertificateAuthority authority("test CA");
  const auto own = authority.issue({"prometheus", {}, {"127.0.0.1"}});
  const auto mine = authority.issue({"haulout", {}, {}});
  std::vector<std::string> seen;
  http::ServerOptions options;
  options.tls = true;
  options.tls_options.ca_pem = authority.pem();
  options.tls_options.client_cert_pem = own.certificate_pem;
  options.tls_options.client_key_pem = own.key_pem;
  auto server = serve(options, [&](http::Exchange& exchange) -> boost::asio::awaitable<void> {
    const std::string token(exchange.request().headers.find("Authorization").value_or(""));
    seen.push_back(exchange.request().target + " " + token);
    const bool known = token == "Bearer second";
    http::Response response{
        known ? 200 : 401, {}, R"({"status":"success","data":{"resultType":"vector","result":[]}})"};
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  config.prometheus_url = fmt::format("https://127.0.0.1:{}/prom", server->port());
  config.prometheus_ca_file = dir.write("ca.pem", authority.pem());
  config.prometheus_cert_file = dir.write("cert.pem", mine.certificate_pem);
  config.prometheus_key_file = dir.write("key.pem", mine.key_pem);
  config.prometheus_token_file = dir.write("token", "first\n");
  const auto way = transport();
  dir.write("token", "second\n");
  SeededRng rng(1);
  PrometheusAlerts alerts(*way, clock, rng, {.query = "up"});
  run_with(*server, [&]() -> boost::asio::awaitable<void> {
    const Gate gate = co_await alerts.judge("n1", true, soon());
    EXPECT_EQ(gate.verdict, Gate::Verdict::open) << gate.message;
  });
  EXPECT_THAT(seen,
              ElementsAre("/prom/api/v1/query?query=up Bearer first", "/prom/api/v1/query?query=up Bearer second"));
}

}  // namespace
}  // namespace haulout::agent
