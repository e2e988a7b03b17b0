// Tests the formats of the report: text, JSON, JUnit, SARIF and the page.
#include <gmock/gmock.h>

#include "agent/process/process.hpp"
#include "cli/audit/audit_report.hpp"
#include "tests/audit/a_cluster.hpp"

namespace haulout::cli {
namespace {

using audit::Severity;
using audit::Verdict;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

audit::Report sample() {
  audit::Report report{.time = audit::ACluster::now(), .source = "my cluster.json"};
  report.assumed = {"a pod terminates after its whole grace period"};
  report.pods = 3;
  report.owners_in_all = 2;
  report.nodes = {
      {.name = "n1",
       .pool = "default",
       .pods = 2,
       .verdict = Verdict::blocked,
       .blocked_by = {{"shop/web-0", "shop/Deployment/web", "BlockedByBudget", "blocked by its budget"}}},
      {.name = "n2",
       .pool = "default",
       .pods = 1,
       .verdict = Verdict::drains,
       .took = std::chrono::milliseconds(93'500),
       .timeline = {{"shop/web-1", "shop/Deployment/web", {}, std::chrono::seconds(1), std::chrono::seconds(31)}}}};
  report.owners = {{{"shop", "Deployment", "web"},
                    "payments",
                    2,
                    {{"BudgetNeverOpens",
                      Severity::blocks,
                      "shop/PodDisruptionBudget/web",
                      "it has <b>maxUnavailable: 0</b>",
                      "raise it",
                      {"n1"},
                      {"shop/web-0"},
                      "BudgetNeverOpens|shop|Deployment|web|shop/PodDisruptionBudget/web"}}},
                   {{"shop", "Pod", "bare"},
                    "",
                    1,
                    {{"UnmanagedPod",
                      Severity::risk,
                      "shop/Pod/bare",
                      "it has no controller & stays away",
                      "",
                      {"n2"},
                      {"shop/bare"},
                      "UnmanagedPod|shop|Pod|bare|shop/Pod/bare"}}}};
  return report;
}

TEST(AuditFormats, Text) {
  EXPECT_THAT(audit_lines(sample()),
              ElementsAre("2 nodes, 3 pods of 2 owners: 1 finding blocks a drain, 1 a risk, 0 worth a note",
                          "shop/Deployment/web (team payments, 2 pods)",
                          "  blocks  BudgetNeverOpens: it has <b>maxUnavailable: 0</b>", "          way out: raise it",
                          "          nodes: n1", "          pods: shop/web-0", "shop/Pod/bare (1 pod)",
                          "  risk    UnmanagedPod: it has no controller & stays away", "          nodes: n2",
                          "          pods: shop/bare", "nodes: 1 can be drained, 1 blocked by shop/Deployment/web",
                          "  node/n1 is blocked", "    pod shop/web-0 (shop/Deployment/web): blocked by its budget",
                          "  node/n2 drains in 1m34s", "assumed:", "  a pod terminates after its whole grace period"));
}

TEST(AuditFormats, TextSaysThatNodesWereNotRehearsed) {
  audit::Report report = sample();
  report.nodes[1].verdict = Verdict::not_rehearsed;
  EXPECT_THAT(audit_lines(report),
              ::testing::Contains(HasSubstr("1 not rehearsed (--rehearse-at-most, --no-rehearse)")));
}

TEST(AuditFormats, TextOfHostileNamesIsPrintable) {
  audit::Report report = sample();
  report.owners[0].findings[0].text = "a\x1b[31mred";
  for (const std::string& line : audit_lines(report)) EXPECT_THAT(line, Not(HasSubstr("\x1b")));
}

TEST(AuditFormats, Json) {
  const json report = json::parse(audit_json(sample()));
  EXPECT_EQ(report["kind"], "Audit");
  EXPECT_EQ(report["time"], "2027-01-15T08:00:00Z");
  EXPECT_EQ(report["source"], "my cluster.json");
  EXPECT_EQ(report["summary"], json::parse(R"({"nodes": 2, "pods": 3, "owners": 2, "nodesThatDrain": 1,
      "nodesBlocked": 1, "nodesNotRehearsed": 0, "findings": {"blocks": 1, "risk": 1, "note": 0},
      "findingsInBaseline": 0})"));
  EXPECT_EQ(report["nodes"][0], json::parse(R"({"name": "n1", "pool": "default", "ready": true, "cordoned": false,
      "pods": 2, "verdict": "blocked", "blockedBy": [{"pod": "shop/web-0", "owner": "shop/Deployment/web",
      "reason": "BlockedByBudget", "text": "blocked by its budget"}], "withoutRoom": [], "timeline": []})"));
  EXPECT_EQ(report["nodes"][1]["seconds"], 93.5);
  EXPECT_EQ(report["nodes"][1]["timeline"],
            json::parse(R"([{"pod": "shop/web-1", "owner": "shop/Deployment/web", "evicted": 1.0, "gone": 31.0}])"));
  EXPECT_EQ(report["owners"][0], json::parse(R"({"namespace": "shop", "team": "payments", "kind": "Deployment",
      "name": "web", "pods": 2, "worst": "blocks", "findings": [{"id": "BudgetNeverOpens", "severity": "blocks",
      "object": "shop/PodDisruptionBudget/web", "text": "it has <b>maxUnavailable: 0</b>", "wayOut": "raise it",
      "nodes": ["n1"], "pods": ["shop/web-0"],
      "key": "BudgetNeverOpens|shop|Deployment|web|shop/PodDisruptionBudget/web"}]})"));
}

TEST(AuditFormats, ABaselineIsAnEarlierReport) {
  using audit::Severity;
  const auto baseline = read_baseline(audit_json(sample()));
  ASSERT_TRUE(baseline);
  EXPECT_THAT(*baseline,
              ElementsAre(Pair("BudgetNeverOpens|shop|Deployment|web|shop/PodDisruptionBudget/web", Severity::blocks),
                          Pair("UnmanagedPod|shop|Pod|bare|shop/Pod/bare", Severity::risk)));
  for (const char* text : {"", "[]", "{}", R"({"kind": "Audit"})", R"({"kind": "Other", "owners": []})"})
    EXPECT_FALSE(read_baseline(text)) << text;
  EXPECT_THAT(*read_baseline(R"({"kind": "Audit", "owners": [1, {}, {"findings": [2, {"key": 3}]}]})"), ElementsAre());
  EXPECT_THAT(*read_baseline(R"({"kind": "Audit", "owners": [{"findings": [{"key": "a"}, {"key": "b", "severity": 7},
                                {"key": "c", "severity": "risk"}, {"key": "c", "severity": "note"}]}]})"),
              ElementsAre(Pair("a", Severity::blocks), Pair("b", Severity::blocks), Pair("c", Severity::risk)));
}

TEST(AuditFormats, TheExitCodeIsThatOfTheWorstFinding) {
  audit::Report report = sample();
  EXPECT_EQ(exit_code(report, Severity::blocks), agent::exit_not_done);
  report.owners.erase(report.owners.begin());
  EXPECT_EQ(exit_code(report, Severity::blocks), agent::exit_done);
  EXPECT_EQ(exit_code(report, Severity::risk), agent::exit_not_done);
  report.owners.clear();
  EXPECT_EQ(exit_code(report, Severity::note), agent::exit_done);
}

TEST(AuditFormats, JUnit) {
  EXPECT_EQ(audit_junit(sample(), Severity::blocks),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="haulout audit" tests="4" failures="2">
    <testcase classname="shop/Deployment/web" name="BudgetNeverOpens shop/PodDisruptionBudget/web"><failure type="blocks" message="it has &lt;b&gt;maxUnavailable: 0&lt;/b&gt;">it has &lt;b&gt;maxUnavailable: 0&lt;/b&gt;
way out: raise it
nodes: n1
pods: shop/web-0</failure></testcase>
    <testcase classname="shop/Pod/bare" name="UnmanagedPod shop/Pod/bare"><system-out>risk: it has no controller &amp; stays away
nodes: n2
pods: shop/bare</system-out></testcase>
    <testcase classname="nodes" name="node/n1"><failure type="blocked" message="BudgetNeverOpens of shop/Deployment/web"></failure></testcase>
    <testcase classname="nodes" name="node/n2"><system-out>drains</system-out></testcase>
  </testsuite>
</testsuites>
)");
}

// A CI system follows a test by its names, and would take a verdict in one for another test.
TEST(AuditFormats, TheNamesInJUnitDoNotDependOnVerdicts) {
  const auto names = [](const audit::Report& report, Severity fail_on) {
    std::vector<std::string> all;
    std::string rest = audit_junit(report, fail_on);
    for (std::size_t at = rest.find("<testcase "); at != std::string::npos; at = rest.find("<testcase ", at + 1))
      all.push_back(rest.substr(at, rest.find('>', at) - at));
    return all;
  };
  audit::Report changed = sample();
  changed.owners[0].findings[0].severity = Severity::note;
  changed.owners[0].findings[0].text = "it has minAvailable: 100%";
  changed.nodes[0].verdict = Verdict::drains;
  changed.nodes[1].verdict = Verdict::drains_without_room;
  const auto first = names(sample(), Severity::blocks);
  EXPECT_EQ(first.size(), 4U);
  EXPECT_EQ(names(changed, Severity::blocks), first);
  EXPECT_EQ(names(sample(), Severity::note), first);
}

// The properties that the schema of SARIF 2.1.0 requires, and those that GitHub's code scanning requires in addition.
TEST(AuditFormats, Sarif) {
  const json log = json::parse(audit_sarif(sample()));
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_EQ(log["runs"].size(), 1U);
  const json& run = log["runs"][0];
  const json& driver = run["tool"]["driver"];
  EXPECT_TRUE(driver["name"].is_string());
  ASSERT_TRUE(driver["rules"].is_array());
  for (const json& rule : driver["rules"]) {
    EXPECT_TRUE(rule["id"].is_string());
    EXPECT_TRUE(rule["shortDescription"]["text"].is_string());
  }
  ASSERT_EQ(run["results"].size(), 2U);
  for (const json& result : run["results"]) {
    EXPECT_EQ(driver["rules"][result["ruleIndex"].get<std::size_t>()]["id"], result["ruleId"]);
    EXPECT_TRUE(result["message"]["text"].is_string());
    ASSERT_EQ(result["locations"].size(), 1U);
    EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "my%20cluster.json");
    EXPECT_EQ(result["locations"][0]["logicalLocations"].size(), 1U);
    EXPECT_EQ(result["partialFingerprints"].size(), 1U);
  }
  EXPECT_EQ(run["results"][0]["level"], "error");
  EXPECT_EQ(run["results"][1]["level"], "warning");
}

TEST(AuditFormats, AFindingInManifestsNamesItsFile) {
  audit::Report report = sample();
  report.of_manifests = true;
  report.owners.front().findings.front().file = "manifests/the budget.yaml";
  const json results = json::parse(audit_sarif(report))["runs"][0]["results"];
  const auto uri_of = [&](std::size_t index) {
    return results[index]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
  };
  EXPECT_EQ(uri_of(0), "manifests/the%20budget.yaml");
  EXPECT_EQ(uri_of(1), "my%20cluster.json");
  EXPECT_THAT(audit_lines(report), ::testing::Contains("          file: manifests/the budget.yaml"));
  const json owners = json::parse(audit_json(report))["owners"];
  EXPECT_EQ(owners[0]["findings"][0]["file"], "manifests/the budget.yaml");
  EXPECT_FALSE(owners[1]["findings"][0].contains("file"));
}

TEST(AuditFormats, ThePageHasTheReport) {
  const std::string page = audit_page(sample());
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, Not(HasSubstr("/*AUDIT-JSON*/")));
  EXPECT_THAT(page, HasSubstr(R"(it has \u003cb>maxUnavailable: 0\u003c/b>)"));
}

}  // namespace
}  // namespace haulout::cli
