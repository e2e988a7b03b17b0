#include <gmock/gmock.h>

#include "http/base64.hpp"
#include "tests/k8s/auth_core_fixture.hpp"

namespace haulout::k8s {
namespace {
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(AuthCoreTest, SaysWhoWeAre) {
  connection.path_prefix = "/clusters/c1";
  connection.token.data = "tok";
  connection.impersonate_user = "jane";
  connection.impersonate_uid = "7";
  connection.impersonate_groups = {"a", "b"};
  connection.impersonate_extra = {{"example.com/k y", "v1"}, {"example.com/k y", "v2"}};
  make();
  EXPECT_EQ(status(), 200);
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
  EXPECT_THAT(server.authorizations(), ElementsAre("none", "Basic " + http::base64_encode("me:p:w")));
}

TEST_F(AuthCoreTest, AConstantTokenThatIsRefusedIsNotTriedAgain) {
  connection.token.data = "tok";
  make();
  accept("other");
  EXPECT_EQ(status(), 401);
  EXPECT_EQ(server.seen.size(), 1u);
}

// The kubeconfig has the id token of an OIDC provider, which the client cannot renew. A request with an expired token
// would fail without a clear cause, so it is not sent.
TEST_F(AuthCoreTest, AnIdTokenThatHasExpiredIsNotSent) {
  connection.token.data = "tok";
  connection.token_expires = clock.wall_now() + 60s;
  make();
  EXPECT_EQ(status(), 200);
  pass(61s);
  const auto answer = get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Errc::unavailable);
  EXPECT_THAT(answer.error().message(),
              AllOf(HasSubstr("kubeconfig f"), HasSubstr("expired at"), HasSubstr("any kubectl command")));
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
  // The file is back. The client reads it within a second, not after another minute.
  dir.write("token", "two");
  pass(1s);
  EXPECT_EQ(status(), 200);
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer one", "Bearer one", "Bearer two"));
}

TEST_F(AuthCoreTest, AConstantTokenStandsInForItsFileAtTheStartOnly) {
  connection.token = Material{"constant", dir / "token"};
  make();
  EXPECT_EQ(status(), 200);
  dir.write("token", "file");
  pass(60s);
  EXPECT_EQ(status(), 200);
  std::filesystem::remove(dir / "token");
  pass(60s);
  EXPECT_EQ(status(), 200);
  accept("nobody's");
  EXPECT_EQ(status(), 401);
  EXPECT_THAT(server.authorizations(),
              ElementsAre("Bearer constant", "Bearer file", "Bearer file", "Bearer file", "Bearer file"));
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
  // Unchanged content is not passed on again, because that would close connections.
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
  // The file with the CA has not changed. So the call fails, and the request is not repeated.
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

TEST_F(AuthCoreTest, FilesThatChangeWithEachFailureAreReadOnceARequest) {
  connection.ca.file = dir.write("ca", "CA 1");
  make();
  server.answer = [&](const http::Request&) -> Result<int> {
    if (server.seen.size() > 10) return 200;
    dir.write("ca", "CA " + std::to_string(server.seen.size() + 1));
    return Error(Errc::tls, "unknown CA");
  };
  const auto response = get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Errc::tls);
  EXPECT_EQ(server.seen.size(), 2u);
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
