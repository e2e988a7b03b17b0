// Tests how the gate judges answers of Prometheus. The answers have the format of Prometheus 2.53.
#include "agent/gates/alerts.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Verdict = Gate::Verdict;

TEST(AlertsTest, TheNodeStandsInTheQuery) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"ALERTS", "ALERTS"},
      {R"(up{instance=~"$node:.*"})", R"(up{instance=~"n1:.*"})"},
      {"$node", "n1"},
      {R"({a="$node",b="$node"})", R"({a="n1",b="n1"})"},
      {"$nodes $node_x $node2", "$nodes $node_x $node2"},
      {"$ node $$node", "$ node $n1"},
      {"", ""},
  };
  for (const auto& [query, sent] : rows) EXPECT_EQ(query_for_node(query, "n1"), sent);
}

TEST(AlertsTest, ReadsAVector) {
  const auto answer = decode_query_answer(
      200,
      R"({"status":"success","data":{"resultType":"vector","result":[)"
      R"({"metric":{"__name__":"ALERTS","alertname":"Full","alertstate":"firing"},"value":[1767225600.5,"1"]},)"
      R"({"metric":{},"value":[1767225600,"NaN"]},)"
      R"({"metric":{"a":"b"},"histogram":[1767225600,{"count":"1","sum":"2"}]}]},"infos":["i"],"warnings":["w"]})");
  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_THAT(answer->samples, SizeIs(3));
  EXPECT_EQ(answer->samples[0].labels.at("alertname"), "Full");
  EXPECT_EQ(answer->samples[0].time, 1767225600.5);
  EXPECT_EQ(answer->samples[0].value, 1);
  EXPECT_EQ(answer->warnings, std::vector<std::string>{"w"});
}

// P4: an answer that cannot be understood does not count as an empty list.
TEST(AlertsTest, WhatIsNoVectorIsAnError) {
  struct Row {
    int status;
    std::string body;
    Errc code;
    std::string says;
  };
  const auto data = [](const std::string& inner) { return R"({"status":"success","data":)" + inner + "}"; };
  const std::vector<Row> rows = {
      {200, "", Errc::decode, "not an answer of Prometheus"},
      {200, "<html>Please log in", Errc::decode, "<html>Please log in"},
      {200, "{}", Errc::decode, ""},
      {200, R"({"status":"success"})", Errc::decode, ""},
      {200, R"({"status":"error","error":"x"})", Errc::decode, ""},
      {200, data("{}"), Errc::decode, "no vector"},
      {200, data(R"({"resultType":"vector"})"), Errc::decode, "no vector"},
      {200, data(R"({"resultType":"vector","result":{}})"), Errc::decode, "no vector"},
      {200, data(R"({"resultType":"vector","result":[{}]})"), Errc::decode, "in an unknown format"},
      {200, data(R"({"resultType":"vector","result":[{"metric":{"a":1},"value":[1,"1"]}]})"), Errc::decode, ""},
      {200, data(R"({"resultType":"vector","result":[{"metric":{},"value":["1",1]}]})"), Errc::decode, ""},
      {200, data(R"({"resultType":"scalar","result":[1,"1"]})"), Errc::invalid, "returns a scalar"},
      {200, data(R"({"resultType":"matrix","result":[]})"), Errc::invalid, "returns a range"},
      {400, R"({"status":"error","errorType":"bad_data","error":"parse error"})", Errc::status, "parse error"},
      {503, R"({"status":"error","errorType":"timeout","error":"query timed out"})", Errc::status, "timed out"},
      {502, "<html>Bad Gateway", Errc::status, "HTTP 502"},
      {401, "", Errc::status, "HTTP 401"},
      {204, "", Errc::status, "HTTP 204"},
  };
  for (const Row& row : rows) {
    const auto answer = decode_query_answer(row.status, row.body);
    ASSERT_FALSE(answer) << row.body;
    EXPECT_EQ(answer.error().code(), row.code) << row.body;
    EXPECT_THAT(answer.error().message(), HasSubstr(row.says)) << row.body;
  }
}

Sample alert(const std::string& name, double time = 10'000, const std::string& state = "firing") {
  return {{{"__name__", "ALERTS"}, {"alertname", name}, {"alertstate", state}, {"instance", "n1:9100"}}, time, 1};
}

Sample since(const std::string& name, double when) {
  return {{{"__name__", "ALERTS_FOR_STATE"}, {"alertname", name}, {"instance", "n1:9100"}}, 10'000, when};
}

TEST(AlertsTest, AnAlertHoldsUpToItsMaximumAge) {
  const Duration hour = 1h;
  EXPECT_THAT(without_old({alert("A")}, {since("A", 10'000 - 3600)}, hour), SizeIs(1));
  EXPECT_THAT(without_old({alert("A")}, {since("A", 10'000 - 3601)}, hour), SizeIs(0));
  EXPECT_THAT(without_old({alert("A"), alert("B")}, {since("A", 0), since("B", 9'999)}, hour), SizeIs(1));
  EXPECT_THAT(without_old({alert("A")}, {}, hour), SizeIs(1)) << "its age is not known";
  EXPECT_THAT(without_old({alert("A")}, {since("B", 0)}, hour), SizeIs(1)) << "another alert";
  Sample elsewhere = since("A", 0);
  elsewhere.labels["instance"] = "n2:9100";
  EXPECT_THAT(without_old({alert("A")}, {elsewhere}, hour), SizeIs(1)) << "the same alert of another machine";
}

TEST(AlertsTest, EverySeriesClosesTheGate) {
  EXPECT_EQ(alerts_gate(std::vector<Sample>{}, {}).verdict, Verdict::open);
  const Gate one = alerts_gate(std::vector<Sample>{alert("DiskFull")}, {});
  EXPECT_EQ(one.verdict, Verdict::closed);
  EXPECT_EQ(one.effect, Gate::Effect::waits) << "an alert gives up nothing that is under way";
  EXPECT_EQ(one.reason, "BlockedByAlert");
  EXPECT_EQ(one.message, "alert DiskFull {instance=\"n1:9100\"} blocks the node");
  EXPECT_THAT(alerts_gate(std::vector<Sample>{alert("A", 1, "pending"), alert("B"), alert("C")}, {}).message,
              ::testing::AllOf(HasSubstr("A (pending)"), HasSubstr(" and 2 more block the node")));
  EXPECT_EQ(alerts_gate(std::vector<Sample>{{{{"__name__", "up"}, {"job", "db"}}, 1, 0}}, {}).message,
            "series up{job=\"db\"} blocks the node");
}

TEST(AlertsTest, APrometheusThatDoesNotAnswerClosesTheGateUnlessToldOtherwise) {
  const Error silent(Errc::timeout, "no answer in time");
  const Gate closed = alerts_gate(silent, {});
  EXPECT_EQ(closed.verdict, Verdict::closed);
  EXPECT_EQ(closed.reason, "PrometheusUnavailable");
  EXPECT_THAT(closed.message, HasSubstr("no answer in time"));
  const Gate open = alerts_gate(silent, {.fail_open = true});
  EXPECT_EQ(open.verdict, Verdict::open);
  EXPECT_THAT(open.message, HasSubstr("no answer in time")) << "and says so";
}

TEST(AlertsTest, ASlipInTheQueryOpensNothing) {
  for (const auto& [status, body] : std::vector<std::pair<int, std::string>>{
           {400, R"({"status":"error","errorType":"bad_data","error":"parse error"})"},
           {200, R"({"status":"success","data":{"resultType":"scalar","result":[1,"1"]}})"}}) {
    const Gate gate = alerts_gate(decode_query_answer(status, body).error(), {.fail_open = true});
    EXPECT_EQ(gate.verdict, Verdict::closed) << body;
    EXPECT_EQ(gate.reason, "PrometheusQueryRefused") << body;
  }
}

}  // namespace
}  // namespace haulout::agent
