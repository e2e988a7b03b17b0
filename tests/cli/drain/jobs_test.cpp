// Tests the commands against the simulated cluster, in virtual time.
#include "tests/cli/drain/jobs_fixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(JobsTest, DrainsAndSaysSoAsKubectlDoes) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("node/n1 cordoned\n"), HasSubstr("evicting pod shop/web-0\n"),
                               HasSubstr("pod/web-0 evicted\n"), HasSubstr("node/n1 drained\n")));
  EXPECT_EQ(text.text, "node/n1 cordoned\nevicting pod shop/web-0\npod/web-0 evicted\nnode/n1 drained\n")
      << "stdout has kubectl's lines and no other";
  EXPECT_THAT(errors.text, HasSubstr("1 pod deleted, 0 skipped"));
  EXPECT_TRUE(cordoned("n1"));
}

TEST_F(JobsTest, OneFailureDoesNotStopTheNextNode) {
  add_pod("alone", "n1", false);
  add_pod("web-0", "n2", true);
  EXPECT_EQ(drain({"drain", "n1", "n2", "-o", "json"}), 1);
  EXPECT_FALSE(cordoned("n1")) << "refused: nothing is touched";
  EXPECT_TRUE(cordoned("n2"));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("--force"), HasSubstr("shop/alone")));
  const Json list = Json::parse(out.text);
  EXPECT_EQ(list["kind"], "DrainReportList");
  EXPECT_EQ(list["items"][0]["outcome"], "refused");
  EXPECT_EQ(list["items"][1]["outcome"], "drained");
}

// The agent would uncordon or reboot the node while a person works there.
TEST_F(JobsTest, ACordonOfTheAgentIsWarnedOf) {
  const std::string begins = "Warning: node/n1 is cordoned by its agent (state ";
  const struct {
    const char* by;
    const char* state;
    const char* remedy;  // empty: no warning
  } rows[] = {
      {"agent", "draining",
       "draining), which may reboot or uncordon it at any time: first run haulout pause n1, and wait"},
      {"agent", "ready", "ready)"},
      {"agent", "verifying", "verifying)"},
      {"agent", "degraded", "first run haulout pause n1, and haulout uncordon n1"},
      {"agent", "pending", "first run haulout pause n1, and haulout uncordon n1"},
      {"agent", "idle", ""},
      {"agent", "", ""},
      {"jane@desk", "draining", ""},
      {"", "draining", ""},
  };
  const WallTime cordoned = clock.wall_now();  // the node stays cordoned from row to row
  for (const auto& row : rows) {
    const std::string mark = drain::encode_mark({"run", row.by, cordoned});
    const auto or_none = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
    cluster.patch("nodes", "", "n1",
                  {{"spec", {{"unschedulable", true}}},
                   {"metadata",
                    {{"labels", {{"haulout.dev/state", or_none(row.state)}}},
                     {"annotations", {{"haulout.dev/cordon", or_none(*row.by ? mark : "")}}}}}});
    for (const char* dry_run : {"--dry-run=none", "--dry-run=client"}) {
      errors.text.clear();
      EXPECT_EQ(drain({"drain", "n1", dry_run}), 0) << errors.text;
      EXPECT_EQ(errors.text.find(begins) != std::string::npos, *row.remedy != 0) << row.by << " " << row.state;
      EXPECT_THAT(errors.text, HasSubstr(row.remedy));
    }
  }
}

// Both nodes are drained by the same command, so neither can take the pods of the other.
TEST_F(JobsTest, NodesThatDoNotFitAreNotTouchedAndTheWayOutIsNamed) {
  for (const char* name : {"n1", "n2"})
    cluster.patch("nodes", "", name, {{"status", {{"allocatable", {{"pods", "9"}}}}}});
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "n2", "--check-fit=block"}), 1);
  EXPECT_FALSE(cordoned("n1"));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("--check-fit=warn"), HasSubstr("2 node(s) were unschedulable")));
}

TEST_F(JobsTest, APodThatDoesNotFitIsWarnedOf) {
  cluster.patch("nodes", "", "n2", {{"status", {{"allocatable", {{"pods", "0"}}}}}});
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "--check-fit=warn"}), 0);
  EXPECT_THAT(errors.text, HasSubstr("Warning: pod shop/web-0 would find no capacity on other nodes: 0/2 nodes are "
                                     "available: 1 Too many pods, 1 node(s) were unschedulable."));
}

TEST_F(JobsTest, AllNodesAreCordonedBeforeTheFirstEviction) {
  add_pod("web-0", "n1", true);
  add_pod("web-1", "n2", true);
  EXPECT_EQ(drain({"drain", "-l", "pool=old"}), 0);
  const std::size_t last_cordon = text.text.find("node/n2 cordoned");
  EXPECT_LT(last_cordon, text.text.find("evicting pod"));
}

TEST_F(JobsTest, TheTimeOfANodeIsItsOwn) {
  add_pod("web-0", "n1", true);
  add_pod("web-1", "n2", true);
  EXPECT_EQ(drain({"drain", "n1", "n2", "-o", "json"}), 0);
  const Json items = Json::parse(out.text)["items"];
  EXPECT_GE(items[1]["startedAt"], items[0]["finishedAt"]);
}

// The report has times in whole seconds.
TEST_F(JobsTest, SomeNodesAtATime) {
  for (const char* name : {"n3", "n4"}) add_node(name);
  for (const char* node : {"n1", "n2", "n3", "n4"}) add_pod(fmt::format("web-{}", node), node, true);
  EXPECT_EQ(drain({"drain", "-l", "pool=old", "--parallel=2", "-o", "json"}), 0);
  const Json items = Json::parse(out.text)["items"];
  ASSERT_EQ(items.size(), 4u);
  EXPECT_LT(items[1]["startedAt"], items[0]["finishedAt"]);
  EXPECT_LT(items[3]["startedAt"], items[2]["finishedAt"]);
  for (const Json& item : items) {
    EXPECT_EQ(item["outcome"], "drained");
    const auto beside = std::ranges::count_if(items, [&](const Json& other) {
      return other["startedAt"] <= item["startedAt"] && item["startedAt"] < other["finishedAt"];
    });
    EXPECT_LE(beside, 2) << item["node"];
  }
}

TEST_F(JobsTest, TheRequestsOfANodeAreItsOwn) {
  add_pod("web-0", "n1", true);
  for (int i = 1; i <= 5; ++i) add_pod(fmt::format("web-{}", i), "n2", true);
  EXPECT_EQ(drain({"drain", "n1", "n2", "--parallel=2", "-o", "json"}), 0);
  const Json items = Json::parse(out.text)["items"];
  const auto created = [&](std::size_t i) { return sim::number(items[i], "/requests/byVerb/create"); };
  EXPECT_EQ(created(1) - created(0), 4) << "five evictions and one";
}

// Nothing replaces these pods, so one of them must stay.
TEST_F(JobsTest, ABudgetAppliesToAllNodesTogether) {
  add_pod("web-0", "n1", true);
  add_pod("web-1", "n2", true);
  add({{"apiVersion", "policy/v1"},
       {"kind", "PodDisruptionBudget"},
       {"metadata", {{"name", "web"}, {"namespace", "shop"}}},
       {"spec", {{"minAvailable", 1}, {"selector", Json::object()}}}});
  EXPECT_EQ(drain({"drain", "n1", "n2", "--parallel=2", "--timeout=1m"}), 1);
  EXPECT_EQ(cluster.all("pods").size(), 1u);
}

TEST_F(JobsTest, SeveralNodesAreInterruptedTogether) {
  for (const char* node : {"n1", "n2"}) add_pod(fmt::format("web-{}", node), node, true);
  EXPECT_EQ(drain({"drain", "n1", "n2", "--parallel=2"}, 3s), 143);
  for (const char* node : {"n1", "n2"})
    EXPECT_THAT(errors.text, HasSubstr(fmt::format("node/{} was not drained: interrupted", node)));
}

TEST_F(JobsTest, UnknownNodeAndNoMatch) {
  EXPECT_EQ(drain({"drain", "n9"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("n9"));
  EXPECT_EQ(drain({"drain", "-l", "pool=none"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("pool=none"));
}

// The command runs in the pod a-job on n1, and drains n1 and n2. It drains the other node first, and evicts its own pod
// last.
TEST_F(JobsTest, TheOwnPodIsEvictedLast) {
  add_pod("a-job", "n1", true);
  add_pod("web-0", "n1", true);
  add_pod("web-1", "n2", true);
  set_token_of_pod("secret", "a-job", "n1");
  sim::TokenTransport in_pod(cluster.api(), "secret");
  sim::FaultTransport unsteady(in_pod, clock, world_rng);
  unsteady.add({.verb = "create", .resource = "", .count = 2, .fault = {.kind = sim::FaultKind::refuse}});
  k8s::Client as_job(unsteady, clock);
  Settings settings = settings_of({"drain", "n1", "n2"});
  LineView view(console, {});
  Tools mine{as_job, clock, rng, console, out, denied, "haulout"};
  settings.in_a_pod = true;
  DrainJob drain_job(mine, settings, view, nullptr);
  EXPECT_EQ(run_job(drain_job), 0);
  EXPECT_LT(text.text.find("pod/web-0 evicted"), text.text.find("evicting pod shop/a-job"));
  EXPECT_LT(text.text.find("node/n2 drained"), text.text.find("evicting pod shop/web-0"));
  EXPECT_EQ(errors.text.find("Warning"), std::string::npos);
}

TEST_F(JobsTest, AnOwnPodThatIsNotKnownIsSaidAndChangesNothingElse) {
  add_pod("web-0", "n1", true);
  cluster.server().intercept([](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (entry.resource.find("selfsubjectreviews") == std::string::npos) return std::nullopt;
    return http::Response{403, {}, "{}"};
  });
  Settings settings = settings_of({"drain", "n1"});
  LineView view(console, {});
  settings.in_a_pod = true;
  DrainJob job(tools(), settings, view, nullptr);
  EXPECT_EQ(run_job(job), 0);
  EXPECT_THAT(errors.text, HasSubstr("Warning: it is unknown in which pod this program runs"));
}

TEST_F(JobsTest, AnInterruptionSaysWhatIsLeft) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "-o", "json"}, 2s), 143);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("interrupted"), HasSubstr("shop/web-0"), HasSubstr("uncordon n1")));
  EXPECT_EQ(Json::parse(out.text)["outcome"], "cancelled");
}

// The server has applied the patch, but the client has not received the response when the signal arrives. So the
// command reports that it is unknown whether the node is cordoned.
TEST_F(JobsTest, AnInterruptionWhileANodeIsCordonedClaimsNothing) {
  sim::FaultTransport silent(cluster.api(), clock, rng);
  silent.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::stall}});
  k8s::Client patient(silent, clock);
  Tools mine{patient, clock, rng, console, out, denied, "haulout"};
  LineView view(console, {});
  DrainJob drain_job(mine, settings_of({"drain", "n1", "-o", "json"}), view, nullptr);
  EXPECT_EQ(run_job(drain_job, 2s), 143);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("it is unknown whether node/n1 is cordoned now"),
                                 HasSubstr("'haulout uncordon n1' uncordons it")));
  const Json report = Json::parse(out.text);
  EXPECT_EQ(report["cordon"]["after"], Json(nullptr));
  EXPECT_EQ(report["cordon"]["owner"], "");

  errors.text.clear();
  CordonJob uncordon_job(mine, settings_of({"uncordon", "n1", "n2"}));
  EXPECT_EQ(run_job(uncordon_job, 2s), 143);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("it is unknown whether node/n1 is cordoned now"),
                                 HasSubstr("interrupted; these nodes were not changed: n2\n")));
}

TEST_F(JobsTest, DryRunChangesNothing) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "--dry-run=client"}), 0);
  EXPECT_FALSE(cordoned("n1"));
  EXPECT_THAT(text.text,
              AllOf(HasSubstr("node/n1 cordoned (dry run)"), HasSubstr("evicting pod shop/web-0 (dry run)\n"),
                    HasSubstr("node/n1 drained (dry run)")));
}

TEST_F(JobsTest, EventsAsJsonLines) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "-o", "jsonl"}), 0);
  std::istringstream lines(out.text);
  std::vector<std::string> types;
  for (std::string line; std::getline(lines, line);) types.push_back(Json::parse(line)["type"]);
  EXPECT_THAT(types, ::testing::IsSupersetOf({"planned", "cordoned", "evicted", "vanished", "finished"}));
}

TEST_F(JobsTest, EventsOfADrainThatIsOverBeforeItsFirstEvictionSayThat) {
  add_pod("alone", "n1", false);
  EXPECT_EQ(drain({"drain", "n1", "-o", "jsonl"}), 1);
  EXPECT_EQ(drain({"drain", "n9", "-o", "jsonl"}), 1);
  cluster.forbid("patch", "nodes");
  Settings unasked = settings_of({"drain", "n2", "-o", "jsonl"});
  unasked.drain.review_access = false;
  LineView view(console, {});
  DrainJob job(tools(), unasked, view, nullptr);
  EXPECT_EQ(run_job(job), 3);
  std::istringstream lines(out.text);
  std::vector<std::string> ends;
  for (std::string line; std::getline(lines, line);)
    if (const Json event = Json::parse(line); event["type"] == "finished")
      ends.push_back(event["node"].get<std::string>() + ": " + event["message"].get<std::string>());
  EXPECT_THAT(ends, ::testing::ElementsAre(HasSubstr("n1: "), HasSubstr("n9: node n9 does not exist"),
                                           HasSubstr("n2: node n2 could not be cordoned")));
}

// One file contains the timelines of all nodes. It is written whatever the outcome of the drain is.
TEST_F(JobsTest, TheTimelineIsKept) {
  const std::string path = ::testing::TempDir() + "haulout-jobs-timeline.svg";
  std::remove(path.c_str());
  add_pod("web-0", "n1", true);
  add_pod("alone", "n2", false);
  EXPECT_EQ(drain({"drain", "n1", "n2", "--timeline", path}), 1) << "n2 is refused";
  std::ostringstream picture;
  picture << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_THAT(picture.str(), AllOf(::testing::StartsWith("<svg"), HasSubstr("Drain of n1, n2"), HasSubstr("shop/web-0"),
                                   HasSubstr("shop/alone"), HasSubstr("</svg>")));
  EXPECT_EQ(errors.text.find("--timeline"), std::string::npos) << errors.text;
}

TEST_F(JobsTest, ATimelineThatCannotBeWrittenIsWrongUsageAndTouchesNothing) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "--timeline", "/nonexistent/timeline.svg"}), 2);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("--timeline"), HasSubstr("/nonexistent")));
  EXPECT_FALSE(cordoned("n1"));
  EXPECT_TRUE(cluster.audit().empty());
}

}  // namespace
}  // namespace haulout::cli
