// Tests alerts of Prometheus as a gate of a node.
#include <fmt/format.h>
#include <fstream>

#include "tests/agent/gates/node_gates_fixture.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Verdict = Gate::Verdict;
using When = GateQuestion::When;

TEST_F(NodeGatesTest, AlertsAreAskedForThisNode) {
  with_prometheus = true;
  options.alerts.query = R"(ALERTS{node="$node"})";
  EXPECT_TRUE(ask().open());
  ASSERT_THAT(prometheus.requests, SizeIs(1));
  EXPECT_EQ(prometheus.requests[0].target, "/api/v1/query?query=ALERTS%7Bnode%3D%22n1%22%7D");
  prometheus.fire({"DiskFull"});
  const GateAnswer closed = ask(When::with_turn);
  EXPECT_EQ(closed.reason(), "BlockedByAlert");
  ASSERT_NE(closed.look_again(), std::nullopt) << "nothing tells when it ends";
  EXPECT_GT(*closed.look_again(), clock.wall_now() + 40s);
  EXPECT_LT(*closed.look_again(), clock.wall_now() + 80s);
}

// Before the node has its slot, an answer of Prometheus may be some seconds old. With the slot, the gate asks
// Prometheus again.
TEST_F(NodeGatesTest, AlertsAreAskedAnewWithTheTurn) {
  with_prometheus = true;
  EXPECT_TRUE(ask(When::before_turn).open());
  EXPECT_TRUE(ask(When::before_turn).open());
  EXPECT_THAT(prometheus.requests, SizeIs(1));
  EXPECT_TRUE(ask(When::with_turn).open());
  EXPECT_THAT(prometheus.requests, SizeIs(2));
  in_the_world([&]() -> boost::asio::awaitable<void> { co_await clock.sleep_until(clock.now() + 11s); });
  EXPECT_TRUE(ask(When::before_turn).open());
  EXPECT_THAT(prometheus.requests, SizeIs(3));
}

TEST_F(NodeGatesTest, ADrainUnderWayAsksNoAlerts) {
  with_prometheus = true;
  prometheus.fire({"DiskFull"});
  EXPECT_TRUE(ask(When::under_way).open());
  EXPECT_THAT(prometheus.requests, IsEmpty());
}

TEST_F(NodeGatesTest, APasswordIsReadForEachRequest) {
  with_prometheus = true;
  const std::string file = ::testing::TempDir() + "haulout-prometheus-password";
  options.alerts.username = "joe";
  options.alerts.password_file = file;
  std::ofstream(file) << "first\n";
  EXPECT_TRUE(ask(When::with_turn).open());
  std::ofstream(file) << "second";
  EXPECT_TRUE(ask(When::with_turn).open());
  std::remove(file.c_str());
  EXPECT_EQ(ask(When::with_turn).reason(), "PrometheusUnavailable");
  ASSERT_THAT(prometheus.requests, SizeIs(2));
  EXPECT_EQ(prometheus.requests[0].headers.find("Authorization"), "Basic am9lOmZpcnN0");
  EXPECT_EQ(prometheus.requests[1].headers.find("Authorization"), "Basic am9lOnNlY29uZA==");
}

TEST_F(NodeGatesTest, OldAlertsHoldNobodyWhenAMaximumAgeIsSet) {
  with_prometheus = true;
  options.alerts.max_age = 1h;
  double since = 1767225600 - 7200;
  bool ages = true;
  prometheus.answer = [&](const http::Request& request) -> Result<http::Response> {
    if (request.target != "/api/v1/query?query=ALERTS_FOR_STATE")
      return http::Response{200, {}, FakePrometheus::vector_of({"Old"})};
    if (!ages) return Error(Errc::timeout, "no answer in time");
    return http::Response{200,
                          {},
                          fmt::format(R"({{"status":"success","data":{{"resultType":"vector","result":[)"
                                      R"({{"metric":{{"__name__":"ALERTS_FOR_STATE","alertname":"Old"}},)"
                                      R"("value":[1767225600,"{}"]}}]}}}})",
                                      since)};
  };
  EXPECT_TRUE(ask(When::with_turn).open());
  since += 7000;
  EXPECT_EQ(ask(When::with_turn).reason(), "BlockedByAlert") << "it is young";
  since -= 7000;
  ages = false;
  EXPECT_EQ(ask(When::with_turn).reason(), "BlockedByAlert") << "nobody knows how old it is";
}

// A Prometheus querier that has lost a store returns an incomplete result with a warning. So an empty result with a
// warning does not show that no alert fires.
TEST_F(NodeGatesTest, AnEmptyAnswerWithAWarningIsNone) {
  with_prometheus = true;
  prometheus.answer = [](const http::Request&) {
    return http::Response{
        200, {}, R"({"status":"success","data":{"resultType":"vector","result":[]},"warnings":["store is away"]})"};
  };
  EXPECT_EQ(ask().reason(), "PrometheusUnavailable");
}

}  // namespace
}  // namespace haulout::agent
