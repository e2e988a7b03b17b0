#include <gmock/gmock.h>

#include "tests/k8s/auth_core_fixture.hpp"

namespace haulout::k8s {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PluginTest : public AuthCoreTest {
 protected:
  PluginTest() {
    connection.exec.emplace();
    connection.exec->command = "login";
  }
  // Sends this many requests at the same time. Returns their status codes, with -1 for a failure.
  std::vector<int> together(int count) {
    std::vector<int> statuses(static_cast<std::size_t>(count));
    auto request = [](AuthCore& auth, TimePoint deadline, int& status) -> boost::asio::awaitable<void> {
      auto response = co_await auth.round_trip(http::Request{}, deadline);
      status = response ? response->status : -1;
    };
    run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      for (int& status : statuses) group.spawn(request(*core, clock.now() + 30s, status));
      co_await group.join();
    }));
    return statuses;
  }
};

TEST_F(PluginTest, RunsOnceAndIsRemembered) {
  plugin_answers = {plugin_token("one")};
  make();
  EXPECT_THAT(together(3), ElementsAre(200, 200, 200));
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(plugin_runs, 1);
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer one", "Bearer one", "Bearer one", "Bearer one"));
}

TEST_F(PluginTest, RunsAgainWhenItsCredentialExpires) {
  auto short_lived = plugin_token("one");
  short_lived.expiration = clock.wall_now() + 10min;
  plugin_answers = {short_lived, plugin_token("two")};
  make();
  EXPECT_EQ(status(), 200);
  pass(9min);
  EXPECT_EQ(status(), 200);
  pass(1min);
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer one", "Bearer one", "Bearer two"));
}

TEST_F(PluginTest, RunsAgainOnceForAllThatAreRefused) {
  plugin_answers = {plugin_token("one"), plugin_token("two")};
  make();
  EXPECT_EQ(status(), 200);
  accept("two");
  EXPECT_THAT(together(3), ElementsAre(200, 200, 200));
  EXPECT_EQ(plugin_runs, 2);
}

TEST_F(PluginTest, AFailureIsSharedAndNotRemembered) {
  plugin_answers = {Error(Errc::unavailable, "exit status 1"), plugin_token("two")};
  make();
  EXPECT_THAT(together(2), ElementsAre(-1, -1));
  EXPECT_EQ(plugin_runs, 1);
  EXPECT_THAT(server.seen, IsEmpty());
  EXPECT_THAT(together(2), ElementsAre(200, 200)) << "nor by who waits for the next one";
}

TEST_F(PluginTest, AFailureNamesTheOrigin) {
  plugin_answers = {Error(Errc::unavailable, "exit status 1")};
  make();
  auto response = get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Errc::unavailable);
  EXPECT_EQ(response.error().message(), "kubeconfig f: exit status 1");
}

TEST_F(PluginTest, WhenTheOneThatRunsItIsCancelledTheNextTakesOver) {
  plugin_answers = {plugin_token("one"), plugin_token("two")};
  make();
  auto request = [](AuthCore& auth, TimePoint deadline, int& status) -> boost::asio::awaitable<void> {
    auto response = co_await auth.round_trip(http::Request{}, deadline);
    status = response ? response->status : -1;
  };
  int first = 0;
  int second = 0;
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    const auto leader = group.spawn(request(*core, clock.now() + 30s, first));
    group.spawn(request(*core, clock.now() + 30s, second));
    co_await clock.sleep_until(clock.now() + 1s);
    group.cancel(leader);
    co_await group.join();
  }));
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 200);
  EXPECT_EQ(plugin_runs, 2);
  EXPECT_EQ(elapsed(), 3s);
}

// The time that a plugin takes does not count as time of the requests that wait for it: a person who logs in needs
// longer than any request may take, and client-go sets no limit either.
TEST_F(PluginTest, WhatItTakesIsNotTheRequests) {
  plugin_takes = 2min;
  plugin_answers = {plugin_token("one"), plugin_token("two")};
  make();
  EXPECT_THAT(together(2), ElementsAre(200, 200));
  EXPECT_THAT(server.deadlines, ElementsAre(start + 2min + 30s, start + 2min + 30s));
  server.deadlines.clear();
  accept("two");
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.deadlines, ElementsAre(start + 2min + 30s, start + 4min + 30s));
}

TEST_F(PluginTest, LoggingInComesBeforeTheFirstRequest) {
  plugin_answers = {plugin_token("one")};
  make();
  run(core->log_in());
  EXPECT_EQ(plugin_runs, 1);
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(plugin_runs, 1);
}

TEST_F(PluginTest, WhenLoggingInFailsTheFirstRequestSaysSo) {
  plugin_answers = {Error(Errc::unavailable, "exit status 1"), plugin_token("two")};
  make();
  run(core->log_in());
  const auto response = get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().message(), "kubeconfig f: exit status 1");
  EXPECT_EQ(plugin_runs, 1) << "nobody is asked twice";
  EXPECT_EQ(status(), 200);
}

TEST_F(PluginTest, ItsCertificateIsUsedOnTopOfTheFiles) {
  connection.ca.file = dir.write("ca", "CA 1");
  plugin_answers = {ExecCredential{"", "CERT 1", "KEY 1", {}}, plugin_token("two")};
  make();
  EXPECT_EQ(status(), 200);
  ASSERT_EQ(tls_used.size(), 1u);
  EXPECT_EQ(tls_used[0].ca_pem, "CA 1");
  EXPECT_EQ(tls_used[0].client_cert_pem, "CERT 1");
  dir.write("ca", "CA 2");
  pass(60s);
  EXPECT_EQ(status(), 200);
  ASSERT_EQ(tls_used.size(), 2u);
  EXPECT_EQ(tls_used[1].ca_pem, "CA 2");
  EXPECT_EQ(tls_used[1].client_cert_pem, "CERT 1");
  // The next run of the plugin returns a token and no certificate. The client then stops using the old certificate.
  accept("two");
  EXPECT_EQ(status(), 200);
  ASSERT_EQ(tls_used.size(), 3u);
  EXPECT_EQ(tls_used[2].client_cert_pem, "");
}

TEST_F(PluginTest, ACertificateThatDoesNotFitIsAFailure) {
  plugin_answers = {ExecCredential{"", "CERT 1", "KEY 2", {}}};
  make();
  auto response = get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Errc::unavailable);
  EXPECT_THAT(response.error().message(), HasSubstr("login"));
  EXPECT_THAT(server.seen, IsEmpty());
}

}  // namespace
}  // namespace haulout::k8s
