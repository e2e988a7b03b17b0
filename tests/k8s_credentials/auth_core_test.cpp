#include "k8s/auth_core.hpp"

#include <gmock/gmock.h>

#include <deque>

#include "k8s/base64.hpp"
#include "k8s/file_credentials.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s_credentials/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OneStream final : public http::BodyStream {
 public:
  explicit OneStream(int status) { head_.status = status; }
  const http::ResponseHead& head() const override { return head_; }
  Task<std::string> read_some(TimePoint) override { co_return std::string(); }

 private:
  http::ResponseHead head_;
};

// Answers by a rule; remembers what it was asked.
class FakeServer final : public http::Transport {
 public:
  std::function<Result<int>(const http::Request&)> answer = [](const http::Request&) { return Result<int>(200); };
  std::vector<http::Request> seen;

  Task<http::Response> round_trip(http::Request request, TimePoint) override {
    CO_TRY(const int status, take(std::move(request)));
    http::Response response;
    response.status = status;
    co_return response;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint) override {
    CO_TRY(const int status, take(std::move(request)));
    std::unique_ptr<http::BodyStream> stream = std::make_unique<OneStream>(status);
    co_return std::move(stream);
  }
  std::vector<std::string> authorizations() const {
    std::vector<std::string> out;
    for (const auto& request : seen) out.emplace_back(request.headers.find("Authorization").value_or("none"));
    return out;
  }

 private:
  Result<int> take(http::Request request) {
    seen.push_back(std::move(request));
    return answer(seen.back());
  }
};

class AuthCoreTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::TempDir dir;
  FakeServer server;
  Connection connection;
  std::unique_ptr<AuthCore> core;
  std::vector<http::TlsOptions> tls_used;
  std::vector<Result<ExecCredential>> plugin_answers;
  int plugin_runs = 0;
  Duration plugin_takes = 2s;

  AuthCoreTest() { connection.origin = "kubeconfig f"; }

  static bool fits(const http::TlsOptions& tls) {
    // A pair fits when both name the same number: "CERT 1" and "KEY 1".
    return tls.client_cert_pem.empty() || tls.client_cert_pem.substr(4) == tls.client_key_pem.substr(3);
  }
  Task<ExecCredential> run_plugin() {
    const auto run = static_cast<std::size_t>(plugin_runs++);
    co_await clock.sleep_until(clock.now() + plugin_takes);
    co_return plugin_answers.at(run);
  }
  AuthCore& make() {
    auto token = load_token(connection);
    auto tls = load_tls(connection);
    EXPECT_TRUE(token && tls);
    AuthHooks hooks;
    hooks.set_tls = [this](http::TlsOptions options) -> Result<> {
      if (!fits(options)) return Error(Errc::tls, "key and certificate do not match");
      tls_used.push_back(std::move(options));
      return {};
    };
    hooks.run_plugin = [this](ExecPlugin, std::string, TimePoint) { return run_plugin(); };
    core = std::make_unique<AuthCore>(context.get_executor(), clock, server, std::move(hooks), connection,
                                      "haulout/test", *token, *tls);
    return *core;
  }
  Result<http::Response> get(const std::string& target = "/api") {
    http::Request request;
    request.target = target;
    return run(core->round_trip(request, clock.now() + 30s));
  }
  int status() {
    auto response = get();
    return response ? response->status : -1;
  }
  void pass(Duration time) { run(clock.sleep_until(clock.now() + time)); }
  static ExecCredential plugin_token(std::string token) { return ExecCredential{std::move(token), {}, {}, {}}; }
  // Accepts one token only.
  void accept(const std::string& token) {
    server.answer = [token](const http::Request& request) {
      return Result<int>(request.headers.find("Authorization") == "Bearer " + token ? 200 : 401);
    };
  }
};

TEST_F(AuthCoreTest, SaysWhoWeAre) {
  connection.path_prefix = "/clusters/c1";
  connection.token.data = "tok";
  connection.impersonate_user = "jane";
  connection.impersonate_uid = "7";
  connection.impersonate_groups = {"a", "b"};
  connection.impersonate_extra = {{"example.com/k y", "v1"}, {"example.com/k y", "v2"}};
  make();
  std::vector<std::string> observed;
  core->on_request([&](const http::Request& request) {
    observed.push_back(request.method + " " + request.target);
    EXPECT_FALSE(request.headers.find("Authorization"));
  });
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(observed, ElementsAre("GET /clusters/c1/api"));
  ASSERT_EQ(server.seen.size(), 1u);
  std::vector<std::string> headers;
  for (const auto& field : server.seen[0].headers.fields()) headers.push_back(field.name + ": " + field.value);
  EXPECT_EQ(server.seen[0].target, "/clusters/c1/api");
  EXPECT_THAT(headers,
              ElementsAre("User-Agent: haulout/test", "Impersonate-User: jane", "Impersonate-Uid: 7",
                          "Impersonate-Group: a", "Impersonate-Group: b", "Impersonate-Extra-example.com%2Fk%20y: v1",
                          "Impersonate-Extra-example.com%2Fk%20y: v2", "Authorization: Bearer tok"));
}

TEST_F(AuthCoreTest, BasicAndNone) {
  make();
  EXPECT_EQ(status(), 200);
  connection.username = "me";
  connection.password = "p:w";
  make();
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.authorizations(), ElementsAre("none", "Basic " + base64_encode("me:p:w")));
}

TEST_F(AuthCoreTest, AConstantTokenThatIsRefusedIsNotTriedAgain) {
  connection.token.data = "tok";
  make();
  accept("other");
  EXPECT_EQ(status(), 401);
  EXPECT_EQ(server.seen.size(), 1u);
}

// --- files that rotate -------------------------------------------------------------------------------------------

TEST_F(AuthCoreTest, TheTokenFileIsReadAgainWithinAMinute) {
  connection.token.file = dir.write("token", "one\n");
  make();
  EXPECT_EQ(status(), 200);
  dir.write("token", "two\n");
  pass(59s);
  EXPECT_EQ(status(), 200);
  pass(1s);
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer one", "Bearer one", "Bearer two"));
}

TEST_F(AuthCoreTest, ARefusedTokenIsReadAgainAtOnce) {
  connection.token.file = dir.write("token", "one");
  make();
  accept("two");
  dir.write("token", "two");
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer one", "Bearer two"));
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(AuthCoreTest, AStreamIsOpenedAgainLikewise) {
  connection.token.file = dir.write("token", "one");
  make();
  accept("two");
  dir.write("token", "two");
  auto stream = run(core->open(http::Request{}, clock.now() + 30s));
  ASSERT_TRUE(stream);
  EXPECT_EQ((*stream)->head().status, 200);
  EXPECT_EQ(server.seen.size(), 2u);
}

TEST_F(AuthCoreTest, AServerThatRefusesEverythingGetsTwoRequests) {
  connection.token.file = dir.write("token", "one");
  make();
  accept("nothing");
  EXPECT_EQ(status(), 401);
  EXPECT_EQ(server.seen.size(), 2u);
}

TEST_F(AuthCoreTest, ATokenFileThatVanishesOrIsEmptyLeavesTheOldOne) {
  connection.token.file = dir.write("token", "one");
  make();
  std::filesystem::remove(dir / "token");
  pass(60s);
  EXPECT_EQ(status(), 200);
  dir.write("token", "");
  pass(1s);
  EXPECT_EQ(status(), 200);
  // Back again: seen within a second, not after another minute.
  dir.write("token", "two");
  pass(1s);
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer one", "Bearer one", "Bearer two"));
}

TEST_F(AuthCoreTest, AHalfWrittenPairIsNotUsed) {
  connection.client_cert.file = dir.write("cert", "CERT 1");
  connection.client_key.file = dir.write("key", "KEY 1");
  make();
  dir.write("cert", "CERT 2");
  pass(60s);
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(tls_used, IsEmpty());
  dir.write("key", "KEY 2");
  pass(1s);
  EXPECT_EQ(status(), 200);
  ASSERT_EQ(tls_used.size(), 1u);
  EXPECT_EQ(tls_used[0].client_cert_pem, "CERT 2");
  EXPECT_EQ(tls_used[0].client_key_pem, "KEY 2");
  // Unchanged content is not handed over again: that would drop connections.
  pass(120s);
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(tls_used.size(), 1u);
}

TEST_F(AuthCoreTest, A401WaitsForTheOtherHalfOfAPair) {
  connection.client_cert.file = dir.write("cert", "CERT 1");
  connection.client_key.file = dir.write("key", "KEY 1");
  make();
  server.answer = [&](const http::Request&) { return Result<int>(tls_used.empty() ? 401 : 200); };
  dir.write("cert", "CERT 2");
  auto other_half = [](Clock& time, haulout::testing::TempDir& files) -> boost::asio::awaitable<void> {
    co_await time.sleep_until(time.now() + 150ms);
    files.write("key", "KEY 2");
  };
  auto request = [](AuthCore& auth, TimePoint deadline, int& status) -> boost::asio::awaitable<void> {
    auto response = co_await auth.round_trip(http::Request{}, deadline);
    status = response ? response->status : -1;
  };
  int answered = 0;
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(other_half(clock, dir));
    group.spawn(request(*core, clock.now() + 30s, answered));
    co_await group.join();
  }));
  EXPECT_EQ(answered, 200);
  EXPECT_EQ(elapsed(), 200ms);
}

TEST_F(AuthCoreTest, AnUnknownServerCertificateMeansTheCaMayHaveChanged) {
  connection.ca.file = dir.write("ca", "CA 1");
  make();
  server.answer = [&](const http::Request&) -> Result<int> {
    if (tls_used.empty()) return Error(Errc::tls, "unknown CA");
    return 200;
  };
  // Unchanged: the failure stands, and the request is not repeated.
  auto response = get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Errc::tls);
  EXPECT_EQ(server.seen.size(), 1u);
  dir.write("ca", "CA 2");
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(server.seen.size(), 3u);
  ASSERT_EQ(tls_used.size(), 1u);
  EXPECT_EQ(tls_used[0].ca_pem, "CA 2");
}

// --- plugins -----------------------------------------------------------------------------------------------------

class PluginTest : public AuthCoreTest {
 protected:
  PluginTest() {
    connection.exec.emplace();
    connection.exec->command = "login";
  }
  // So many requests at the same time; returns their statuses, -1 for a failure.
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
  EXPECT_EQ(status(), 200);
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

TEST_F(PluginTest, WaitingForAnothersRunEndsAtTheDeadline) {
  plugin_takes = 20s;
  plugin_answers = {plugin_token("one")};
  make();
  auto request = [](AuthCore& auth, TimePoint deadline, Errc& failure) -> boost::asio::awaitable<void> {
    auto response = co_await auth.round_trip(http::Request{}, deadline);
    if (!response) failure = response.error().code();
  };
  Errc patient = Errc::invalid;
  Errc hurried = Errc::invalid;
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(request(*core, clock.now() + 30s, patient));
    group.spawn(request(*core, clock.now() + 5s, hurried));
    co_await group.join();
  }));
  EXPECT_EQ(patient, Errc::invalid);
  EXPECT_EQ(hurried, Errc::timeout);
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
  // A plugin that changes its mind takes the certificate back.
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

// --- what files may hold -----------------------------------------------------------------------------------------

TEST_F(AuthCoreTest, FilesThatCannotBeUsedAreNamed) {
  connection.client_cert.file = dir / "missing.pem";
  auto tls = load_tls(connection);
  ASSERT_FALSE(tls);
  EXPECT_EQ(tls.error().code(), Errc::unavailable);
  EXPECT_THAT(tls.error().message(), HasSubstr("kubeconfig f: cannot read client certificate " + dir.path()));
  for (const auto* content : {"", " \n", "s3cret\r\nX-Other: y"}) {
    connection.token.file = dir.write("token", content);
    auto token = load_token(connection);
    ASSERT_FALSE(token);
    EXPECT_THAT(token.error().message(), HasSubstr(dir / "token"));
    EXPECT_THAT(token.error().message(), ::testing::Not(HasSubstr("s3cret")));
  }
}

TEST_F(AuthCoreTest, AConstantTokenStandsInForItsMissingFile) {
  connection.token = Material{"constant", dir / "missing"};
  EXPECT_EQ(*load_token(connection), "constant");
  dir.write("missing", " file \n");
  EXPECT_EQ(*load_token(connection), "file");
}

}  // namespace
}  // namespace haulout::k8s
