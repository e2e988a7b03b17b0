#include "agent/report/status_pages.hpp"

#include <gmock/gmock.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "retry/real_clock.hpp"
#include "retry/task_group.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class StatusPageTest : public ::testing::Test {
 protected:
  http::Response get(const std::string& target, const std::string& method = "GET", const std::string& accept = "") {
    http::Request request;
    request.method = method;
    if (!accept.empty()) request.headers.add("Accept", accept);
    request.target = target;
    return status_page(request, {[] { return std::string("haulout_degraded 0\n"); }, [this] { return checks; }});
  }
  std::vector<Check> checks{{"api", ""}, {"backend", ""}};
};

TEST_F(StatusPageTest, MetricsAreWhatPrometheusReads) {
  const auto page = get("/metrics?x=y");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.find("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(page.body, "haulout_degraded 0\n");
}

TEST_F(StatusPageTest, MetricsAreInTheFormatThatTheScraperPrefers) {
  const auto page = get("/metrics", "GET", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.find("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(page.body, "haulout_degraded 0\n# EOF\n");
  const auto old = get("/metrics", "GET", "text/plain;version=0.0.4");
  EXPECT_EQ(old.headers.find("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(old.body, "haulout_degraded 0\n");
  EXPECT_EQ(get("/healthz", "GET", "application/openmetrics-text").body, "ok\n");
}

TEST_F(StatusPageTest, ReadinessNamesWhatIsMissing) {
  EXPECT_EQ(get("/readyz").status, 200);
  checks[1].problem = "the package database is locked";
  const auto page = get("/readyz");
  EXPECT_EQ(page.status, 503);
  EXPECT_THAT(page.body, HasSubstr("[+]api ok\n[-]backend failed: the package database is locked\n"));
  checks[1] = {"backend", "", "the package database is locked"};
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_THAT(get("/readyz").body, HasSubstr("[+]backend ok (the package database is locked)\n"));
  EXPECT_EQ(get("/healthz").status, 200) << "restarting the agent helps nobody";
}

TEST_F(StatusPageTest, NothingElseIsThere) {
  EXPECT_EQ(get("/").status, 404);
  EXPECT_EQ(get("/metrics/x").status, 404);
  EXPECT_EQ(get("/metrics", "POST").status, 405);
  EXPECT_EQ(get("/metrics", "POST").headers.find("Allow"), "GET");
}

TEST(ListenAddressTest, WhatIsUnderstood) {
  struct Row {
    const char* text;
    const char* host;
    std::uint16_t port;
  };
  for (const Row& row : {Row{"127.0.0.1:9475", "127.0.0.1", 9475}, Row{"[::1]:80", "::1", 80}, Row{":9475", "", 9475},
                         Row{"0.0.0.0:0", "0.0.0.0", 0}}) {
    const auto parsed = parse_listen_address(row.text);
    ASSERT_TRUE(parsed) << row.text;
    EXPECT_EQ(parsed->host, row.host);
    EXPECT_EQ(parsed->port, row.port);
  }
  for (const char* text : {"", "9475", "localhost:80", "::1:80", "[127.0.0.1]:80", "127.0.0.1:", "127.0.0.1:99999",
                           "127.0.0.1:80x", "[::1:80"}) {
    const auto parsed = parse_listen_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Errc::invalid);
    EXPECT_THAT(parsed.error().message(), HasSubstr("write it like"));
  }
}

class StatusServerTest : public haulout::testing::RealTimeTest {
 protected:
  Result<std::unique_ptr<http::Server>> serve(const std::string& address) {
    return serve_status_pages(context.get_executor(), clock, address,
                              {[] { return std::string("x 1\n"); }, [] { return std::vector<Check>(); }});
  }
  boost::asio::awaitable<void> read_pages(std::uint16_t port) {
    http::Endpoint endpoint{http::Endpoint::Kind::tcp, "127.0.0.1", port};
    auto client = http::Client::create(context.get_executor(), clock, endpoint, {});
    for (const char* path : {"/metrics", "/healthz", "/readyz"}) {
      http::Request request;
      request.target = path;
      auto answer = co_await (*client)->round_trip(std::move(request), soon());
      EXPECT_TRUE(answer) << path;
      if (answer) EXPECT_EQ(answer->status, 200) << path;
    }
  }
};

TEST_F(StatusServerTest, PagesAreServedOnAllAddresses) {
  auto server = serve(":0");
  ASSERT_TRUE(server) << server.error().message();
  run(with_task_group([&](TaskGroup& group) {
    group.spawn((*server)->run());
    return read_pages((*server)->port());
  }));
}

// Any pod of the cluster can open connections to the server and send nothing. The server must still answer the kubelet,
// which requests /healthz.
TEST_F(StatusServerTest, SilentConnectionsKeepNobodyOut) {
  auto server = serve("127.0.0.1:0");
  ASSERT_TRUE(server);
  std::vector<boost::asio::ip::tcp::socket> silent;
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn((*server)->run());
    const boost::asio::ip::tcp::endpoint address(boost::asio::ip::address_v4::loopback(), (*server)->port());
    for (int i = 0; i < 200; ++i) {
      silent.emplace_back(context);
      co_await silent.back().async_connect(address, boost::asio::use_awaitable);
    }
    for (int i = 0; i < 3; ++i) co_await read_pages((*server)->port());
    group.cancel();
  }));
}

// The server limits the memory for each of its 64 connections. It answers a request with a head of more than 16 KiB
// with 400.
TEST_F(StatusServerTest, ALongHeadIsRefused) {
  auto server = serve("127.0.0.1:0");
  ASSERT_TRUE(server);
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn((*server)->run());
    http::Endpoint endpoint{http::Endpoint::Kind::tcp, "127.0.0.1", (*server)->port()};
    auto client = http::Client::create(context.get_executor(), clock, endpoint, {});
    for (const auto& [bytes, status] : {std::pair{10'000, 200}, std::pair{20'000, 400}}) {
      http::Request request;
      request.target = "/healthz";
      request.headers.add("X", std::string(static_cast<std::size_t>(bytes), 'x'));
      auto answer = co_await (*client)->round_trip(std::move(request), soon());
      EXPECT_TRUE(answer) << bytes;
      if (answer) EXPECT_EQ(answer->status, status) << bytes;
    }
    group.cancel();
  }));
}

TEST_F(StatusServerTest, AnAddressThatIsTakenIsNamed) {
  auto first = serve("127.0.0.1:0");
  ASSERT_TRUE(first);
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = serve(address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::unavailable);
  EXPECT_THAT(second.error().message(), HasSubstr("--metrics-address"));
  EXPECT_THAT(second.error().message(), HasSubstr(address));
}

}  // namespace
}  // namespace haulout::agent
