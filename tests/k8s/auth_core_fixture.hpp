// Fixture for AuthCore in virtual time. The server answers by a rule of the test, files are in a temporary directory,
// and the plugin returns a list of prepared results. Reads and writes files; no network. Owns all of these.
#pragma once

#include <gtest/gtest.h>

#include "k8s/auth_transport.hpp"
#include "k8s/credential_file.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {

class OneStream final : public http::BodyStream {
 public:
  explicit OneStream(int status) { head_.status = status; }
  const http::ResponseHead& head() const override { return head_; }
  Task<std::string> read_some(TimePoint) override { co_return std::string(); }

 private:
  http::ResponseHead head_;
};

// Answers by a rule, and records all requests.
class FakeServer final : public http::Transport {
 public:
  std::function<Result<int>(const http::Request&)> answer = [](const http::Request&) { return Result<int>(200); };
  std::vector<http::Request> seen;
  std::vector<TimePoint> deadlines;

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    deadlines.push_back(deadline);
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
  Duration plugin_takes = std::chrono::seconds(2);

  AuthCoreTest() { connection.origin = "kubeconfig f"; }

  static bool fits(const http::TlsOptions& tls) {
    // A certificate fits a key if both end with the same number: "CERT 1" and "KEY 1".
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
    hooks.run_plugin = [this](ExecPlugin, std::string) { return run_plugin(); };
    core = std::make_unique<AuthCore>(context.get_executor(), clock, server, std::move(hooks), connection,
                                      "haulout/test", *token, *tls);
    return *core;
  }
  Result<http::Response> get(const std::string& target = "/api") {
    http::Request request;
    request.target = target;
    return run(core->round_trip(request, clock.now() + std::chrono::seconds(30)));
  }
  int status() {
    auto response = get();
    return response ? response->status : -1;
  }
  void pass(Duration time) { run(clock.sleep_until(clock.now() + time)); }
  static ExecCredential plugin_token(std::string token) { return ExecCredential{std::move(token), {}, {}, {}}; }
  // Makes the server accept this token only.
  void accept(const std::string& token) {
    server.answer = [token](const http::Request& request) {
      return Result<int>(request.headers.find("Authorization") == "Bearer " + token ? 200 : 401);
    };
  }
};

}  // namespace haulout::k8s
