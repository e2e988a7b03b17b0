#include "agent/process/transports.hpp"

#include "agent/process/process.hpp"
#include "cli/program/program.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using haulout::testing::json_response;
using haulout::testing::ScriptedTransport;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class TransportsTest : public haulout::testing::VirtualTimeTest {
 protected:
  http::Request request(std::string method, std::string target) {
    http::Request result;
    result.method = std::move(method);
    result.target = std::move(target);
    result.headers.set("Authorization", "Bearer secret");
    result.body = "secret body";
    return result;
  }
  agent::WatchedTransport watched(std::optional<Duration> request_timeout = std::nullopt) {
    return {script, clock, log, [this](const agent::RequestEnd& end) { told.push_back(end); }, request_timeout};
  }

  ScriptedTransport script{clock};
  std::vector<std::string> lines;
  agent::Log log{{agent::LogFormat::text, 1}, clock, [this](const std::string& line) { lines.push_back(line); }};
  std::vector<agent::RequestEnd> told;
};

TEST_F(TransportsTest, LogsWhatWasAskedButNothingSecret) {
  agent::WatchedTransport transport = watched();
  script.answer(json_response(201, "{\"secret\":1}"), 20ms);
  EXPECT_TRUE(run(transport.round_trip(request("POST", "/api/v1/namespaces/a/pods/b/eviction"), start + 1s)));
  EXPECT_THAT(lines,
              ElementsAre(AllOf(HasSubstr("method=POST"), HasSubstr("target=/api/v1/namespaces/a/pods/b/eviction"),
                                HasSubstr("status=201"), HasSubstr("ms=20"), Not(HasSubstr("secret")))));
}

TEST_F(TransportsTest, RequestTimeoutBoundsTheDeadline) {
  agent::WatchedTransport transport = watched(2s);
  script.answer(json_response(200, "{}"));
  script.answer(json_response(200, "{}"));
  EXPECT_TRUE(run(transport.round_trip(request("GET", "/api/v1/pods"), start + 1h)));
  EXPECT_TRUE(run(transport.round_trip(request("GET", "/api/v1/pods"), start + 1s)));
  ASSERT_EQ(script.requests().size(), 2u);
  EXPECT_EQ(script.requests()[0].deadline, start + 2s);
  EXPECT_EQ(script.requests()[1].deadline, start + 1s) << "never later than the caller's";
}

TEST_F(TransportsTest, RequestsAreCountedByVerb) {
  agent::CountingTransport transport(script);
  for (int i = 0; i < 3; ++i) script.answer(json_response(200, "{}"));
  EXPECT_TRUE(run(transport.round_trip(request("GET", "/api/v1/pods"), start + 1s)));
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(run(transport.round_trip(request("POST", "/api/v1/namespaces/a/pods/b/eviction"), start + 1s)));
  EXPECT_EQ(transport.counts().total, 3u);
  EXPECT_THAT(transport.counts().by_verb, ElementsAre(std::pair("create", 2u), std::pair("list", 1u)));
}

TEST_F(TransportsTest, EachRequestIsToldWithItsEnd) {
  agent::WatchedTransport transport = watched();
  script.answer(json_response(429, "{}"));
  script.fail(Error(Errc::unreachable, "refused"));
  script.refuse_stream(403, "{}");
  script.fail_stream(Error(Errc::timeout, "late"));
  EXPECT_EQ(run(transport.round_trip(request("POST", "/a"), TimePoint::max()))->status, 429);
  EXPECT_EQ(run(transport.round_trip(request("GET", "/b"), TimePoint::max())).error().code(), Errc::unreachable);
  EXPECT_EQ((*run(transport.open(request("GET", "/c"), TimePoint::max())))->head().status, 403);
  EXPECT_EQ(run(transport.open(request("GET", "/d"), TimePoint::max())).error().code(), Errc::timeout);
  std::vector<std::string> ends;
  for (const agent::RequestEnd& end : told)
    ends.push_back(end.method + " " + end.target + " " +
                   (end.status != 0 ? std::to_string(end.status) : std::string(to_string(end.failure))));
  EXPECT_THAT(ends, ElementsAre("POST /a 429", "GET /b unreachable", "GET /c 403", "GET /d timeout"));
}

TEST_F(TransportsTest, TellsWhatTheServerWarnsOf) {
  agent::WatchedTransport transport = watched();
  http::Response answer = json_response(200, "{}");
  answer.headers.add("Warning", "299 - \"policy quiet-hours\"");
  script.answer(answer);
  EXPECT_TRUE(run(transport.round_trip(request("GET", "/a"), TimePoint::max())));
  EXPECT_THAT(told.at(0).warnings, ElementsAre("policy quiet-hours"));
}

// The log lines have the format of kubectl's lines at -v=6, which people know.
TEST_F(TransportsTest, LogsRequestsAsKubectlDoes) {
  agent::WatchedTransport transport(
      script, clock, log, [](const agent::RequestEnd&) {}, std::nullopt, "https://10.0.0.1:6443");
  script.answer(json_response(200, "{}"), 3ms);
  script.answer(json_response(418, "{}"));
  script.fail(Error(Errc::unreachable, "refused"));
  for (const char* target : {"/api/v1/nodes?limit=500", "/b", "/c"}) {
    const auto answer = run(transport.round_trip(request("GET", target), TimePoint::max()));
    EXPECT_EQ(answer.has_value(), target != std::string("/c"));
  }
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("\"Response\" verb=\"GET\" url=\"https://10.0.0.1:6443/api/v1/nodes?limit=500\" "
                                    "status=\"200 OK\" milliseconds=3"),
                          HasSubstr("status=\"418\""), HasSubstr("url=\"https://10.0.0.1:6443/c\" status=\"\"")));
}

TEST(ServerWarningsTest, EachTextIsToldOnce) {
  std::vector<std::string> told;
  agent::ServerWarnings warnings([&told](const std::string& text) { told.push_back(text); });
  warnings.see({"a", "b"});
  warnings.see({"b", "c"});
  EXPECT_THAT(told, ElementsAre("a", "b", "c"));
  EXPECT_EQ(warnings.count(), 3u);
}

TEST(ServerWarningsTest, ARepeatedTextIsNotToldAgainBecauseTheMemoryIsFull) {
  std::size_t told = 0;
  agent::ServerWarnings warnings([&told](const std::string&) { ++told; });
  for (std::size_t i = 0; i < 200; ++i) warnings.see({std::to_string(i)});
  warnings.see({"7"});
  EXPECT_EQ(told, 200u);
}

class ResolveNodesTest : public TransportsTest {
 protected:
  Result<std::vector<std::string>> resolve(Settings settings) {
    k8s::Client client(script, clock);
    struct NoSink final : agent::Sink {
      void write(std::string_view) override {}
    } nowhere;
    Console console(nowhere, nowhere);
    SeededRng rng{1};
    agent::DeniedRequest denied;
    const Tools tools{client, clock, rng, console, nowhere, denied, "haulout"};
    return run(resolve_nodes(tools, std::move(settings), start + 30s));
  }
  static Settings selecting(std::string selector) {
    Settings settings;
    settings.selector = std::move(selector);
    return settings;
  }
};

TEST_F(ResolveNodesTest, NamesAreTakenWithoutAsking) {
  Settings settings;
  settings.nodes = {"b", "a"};
  EXPECT_THAT(resolve(settings).value(), ElementsAre("b", "a"));
  EXPECT_TRUE(script.requests().empty());
}

TEST_F(ResolveNodesTest, SelectedNodes) {
  script.answer(json_response(200, R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[
      {"metadata":{"name":"n1","uid":"u1","resourceVersion":"1","labels":{"pool":"old"}}},
      {"metadata":{"name":"n2","uid":"u2","resourceVersion":"1","labels":{"pool":"old"}}}]})"));
  EXPECT_THAT(resolve(selecting("pool=old")).value(), ElementsAre("n1", "n2"));
  EXPECT_THAT(script.requests()[0].request.target, HasSubstr("labelSelector=pool%3Dold"));
}

TEST_F(ResolveNodesTest, NoMatchIsNoSuccess) {
  script.answer(
      json_response(200, R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]})"));
  const auto nodes = resolve(selecting("pool=old"));
  ASSERT_FALSE(nodes.has_value());
  EXPECT_THAT(nodes.error().message(), HasSubstr("pool=old"));
  EXPECT_EQ(agent::exit_code(nodes.error()), 1);
}

}  // namespace
}  // namespace haulout::cli
