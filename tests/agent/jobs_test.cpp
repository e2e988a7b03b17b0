// The commands against the simulated cluster, in virtual time.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "agent/command_line.hpp"
#include "agent/cordon_job.hpp"
#include "agent/drain_job.hpp"
#include "retry/task_group.hpp"
#include "sim/cluster.hpp"
#include "sim/faults.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct TextSink final : Sink {
  std::string text;
  void write(std::string_view more) override { text += more; }
};

class JobsTest : public haulout::testing::VirtualTimeTest {
 protected:
  JobsTest() {
    for (const char* name : {"n1", "n2"})
      add({{"apiVersion", "v1"},
           {"kind", "Node"},
           {"metadata", {{"name", name}, {"labels", {{"pool", "old"}}}}},
           {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }
  void add_pod(const std::string& name, const std::string& node, bool managed) {
    Json metadata = {{"name", name}, {"namespace", "shop"}};
    if (managed)
      metadata["ownerReferences"] = {
          {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "r"}, {"uid", "r"}, {"controller", true}}};
    add({{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", metadata},
         {"spec",
          {{"nodeName", node},
           {"terminationGracePeriodSeconds", 5},
           {"containers", {{{"name", "m"}, {"image", "i"}}}}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  static Settings settings_of(const std::vector<std::string>& args) {
    auto settings = std::get<Settings>(parse_command_line("haulout", args));
    settings.drain.run_id = "test";
    settings.drain.cordoned_by = "jane@desk";
    return settings;
  }
  Tools tools() { return tools(client); }
  Tools tools(k8s::Client& other) { return {other, clock, rng, console, out, ledger, "haulout"}; }

  // To its end, or to `interrupt` after that time.
  int run_job(Job& job, std::optional<Duration> interrupt = std::nullopt) {
    run(beside_cluster(job, interrupt));
    return job.finish(interrupt ? std::optional(15) : std::nullopt);
  }
  boost::asio::awaitable<void> beside_cluster(Job& job, std::optional<Duration> interrupt) {
    const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      co_await clock.sleep_until(clock.now() + 1s);
      const auto id = group.spawn(job.run());
      if (interrupt) {
        co_await clock.sleep_until(clock.now() + *interrupt);
        group.cancel(id);
        co_await clock.sleep_until(clock.now() + 1s);
      } else {
        co_await clock.sleep_until(clock.now() + 10min);
      }
    };
    co_await with_task_group(body);
  }
  int drain(const std::vector<std::string>& args, std::optional<Duration> interrupt = std::nullopt) {
    const Settings settings = settings_of(args);
    LineView view(console, {});
    DrainJob job(tools(), settings, view, nullptr);
    return run_job(job, interrupt);
  }
  int cordon(const std::vector<std::string>& args) {
    CordonJob job(tools(), settings_of(args));
    return run_job(job);
  }
  bool cordoned(const std::string& node) const {
    return sim::flag(cluster.get("nodes", "", node), "/spec/unschedulable");
  }

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  k8s::Client client{cluster.api(), clock, {k8s::FieldValidation::strict, 500}};
  TextSink text, errors, out;
  Console console{text, errors};
  RequestLedger ledger;
};

TEST_F(JobsTest, DrainsAndSaysSoAsKubectlDoes) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("node/n1 cordoned\n"), HasSubstr("evicting pod shop/web-0\n"),
                               HasSubstr("pod/web-0 evicted\n"), HasSubstr("node/n1 drained\n")));
  EXPECT_EQ(text.text, "node/n1 cordoned\nevicting pod shop/web-0\npod/web-0 evicted\nnode/n1 drained\n")
      << "stdout has kubectl's lines and no other";
  EXPECT_THAT(errors.text, HasSubstr("1 pod gone, 0 skipped"));
  EXPECT_TRUE(cordoned("n1"));
}

// kubectl's client repeats these, too.
TEST_F(JobsTest, AMomentOfTroubleEndsNoCommand) {
  add_pod("web-0", "n1", true);
  sim::Fault busy{.kind = sim::FaultKind::throttle};
  sim::Fault restarting{.kind = sim::FaultKind::server_error};
  sim::Fault reset{.kind = sim::FaultKind::reset_before};
  sim::Fault refused{.kind = sim::FaultKind::refuse};
  for (const sim::Fault& fault : {busy, restarting, reset, refused}) {
    for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
             {"cordon", "n1", "n2"}, {"uncordon", "n1"}, {"uncordon", "-l", "pool=old"}, {"drain", "-l", "pool=old"}}) {
      sim::FaultTransport troubled(cluster.api(), clock, rng);
      for (const char* verb : {"get", "list", "patch"})
        troubled.add({.verb = verb, .resource = "nodes", .count = 2, .fault = fault});
      k8s::Client other(troubled, clock);
      const Settings settings = settings_of(args);
      LineView view(console, {});
      errors.text.clear();
      if (args[0] == "drain") {
        DrainJob job(tools(other), settings, view, nullptr);
        EXPECT_EQ(run_job(job), 0) << args[0] << " " << to_string(fault.kind) << ": " << errors.text;
      } else {
        CordonJob job(tools(other), settings);
        EXPECT_EQ(run_job(job), 0) << args[0] << " " << to_string(fault.kind) << ": " << errors.text;
      }
      EXPECT_FALSE(troubled.struck().empty());
    }
  }
}

TEST_F(JobsTest, AServerThatIsNotThereEndsACommandAfterTenSeconds) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"cordon", "n1"}, {"uncordon", "-l", "pool=old"}}) {
    sim::FaultTransport away(cluster.api(), clock, rng);
    away.add({.verb = "", .resource = "", .fault = {.kind = sim::FaultKind::refuse}});
    k8s::Client other(away, clock);
    CordonJob job(tools(other), settings_of(args));
    errors.text.clear();
    EXPECT_EQ(run_job(job), 3);
    EXPECT_GT(away.struck().size(), 3u);
    EXPECT_LT(away.struck().size(), 40u);
  }
}

TEST_F(JobsTest, AServerThatRestartsIsWaitedForAndThatIsSaid) {
  sim::FaultTransport restarting(cluster.api(), clock, rng);
  restarting.add({.until = clock.now() + 20s, .fault = {.kind = sim::FaultKind::server_error}});
  k8s::Client other(restarting, clock);
  CordonJob job(tools(other), settings_of({"cordon", "n1"}));
  EXPECT_EQ(run_job(job), 0);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_THAT(errors.text, HasSubstr("waiting for the API server: "));
}

// What the first try has changed is found by the second.
TEST_F(JobsTest, ACordonWhoseAnswerWasLostIsStillNews) {
  for (const char* command : {"cordon", "uncordon"}) {
    sim::FaultTransport lossy(cluster.api(), clock, rng);
    lossy.add({.verb = "patch", .resource = "nodes", .count = 1, .fault = {.kind = sim::FaultKind::reset_after}});
    k8s::Client other(lossy, clock);
    CordonJob job(tools(other), settings_of({command, "n1"}));
    text.text.clear();
    EXPECT_EQ(run_job(job), 0);
    EXPECT_EQ(text.text, fmt::format("node/n1 {}ed\n", command));
  }
}

TEST_F(JobsTest, OneNameThatDoesNotExistStopsAllBeforeAnythingIsTouched) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "n8", "n9"}), 1);
  EXPECT_FALSE(cordoned("n1"));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("nodes n8, n9 do not exist"), HasSubstr("nothing was touched")));
  EXPECT_EQ(cordon({"cordon", "n1", "n9", "n2"}), 1);
  EXPECT_FALSE(cordoned("n1"));
  cluster.cordon("n1");
  EXPECT_EQ(cordon({"uncordon", "n9", "n1"}), 1);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_EQ(text.text, "");
}

TEST_F(JobsTest, ASelectorWithoutANodeIsAnErrorOfADrainAlone) {
  EXPECT_EQ(cordon({"cordon", "-l", "pool=none"}), 0) << "as kubectl";
  EXPECT_THAT(errors.text, HasSubstr("pool=none"));
  EXPECT_EQ(text.text, "");
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

// None of them is a refuge for the pods of the other.
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
  EXPECT_THAT(errors.text, HasSubstr("Warning: pod shop/web-0 would find no room elsewhere: 0/2 nodes are available: 1 "
                                     "Too many pods, 1 node(s) were unschedulable."));
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

TEST_F(JobsTest, UnknownNodeAndNoMatch) {
  EXPECT_EQ(drain({"drain", "n9"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("n9"));
  EXPECT_EQ(drain({"drain", "-l", "pool=none"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("pool=none"));
}

// As a Job would drain the nodes of which it runs on one.
TEST_F(JobsTest, TheOwnPodIsEvictedLast) {
  add_pod("a-job", "n1", true);
  add_pod("web-0", "n1", true);
  add_pod("web-1", "n2", true);
  sim::Identity job = sim::service_account("shop", "drainer");
  job.node_name = "n1";
  job.pod_name = "a-job";
  job.pod_uid = sim::uid_of(cluster.get("pods", "shop", "a-job"));
  cluster.set_token("secret", job);
  sim::TokenTransport in_pod(cluster.api(), "secret");
  sim::FaultTransport unsteady(in_pod, clock, world_rng);
  unsteady.add({.verb = "create", .resource = "", .count = 2, .fault = {.kind = sim::FaultKind::refuse}});
  k8s::Client as_job(unsteady, clock);
  Settings settings = settings_of({"drain", "n1", "n2"});
  LineView view(console, {});
  Tools mine{as_job, clock, rng, console, out, ledger, "haulout"};
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
  EXPECT_THAT(errors.text, HasSubstr("Warning: in which pod this runs is not known"));
}

TEST_F(JobsTest, AnInterruptionSaysWhatIsLeft) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "-o", "json"}, 2s), 143);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("interrupted"), HasSubstr("shop/web-0"), HasSubstr("uncordon n1")));
  EXPECT_EQ(Json::parse(out.text)["outcome"], "cancelled");
}

// The server has done it, and its answer is still out.
TEST_F(JobsTest, AnInterruptionWhileANodeIsCordonedClaimsNothing) {
  sim::FaultTransport silent(cluster.api(), clock, rng);
  silent.add({.verb = "patch", .resource = "nodes", .fault = {.kind = sim::FaultKind::stall}});
  k8s::Client patient(silent, clock);
  Tools mine{patient, clock, rng, console, out, ledger, "haulout"};
  LineView view(console, {});
  DrainJob drain_job(mine, settings_of({"drain", "n1", "-o", "json"}), view, nullptr);
  EXPECT_EQ(run_job(drain_job, 2s), 143);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("whether node/n1 is cordoned now is not known"),
                                 HasSubstr("'haulout uncordon n1' takes a cordon back")));
  const Json report = Json::parse(out.text);
  EXPECT_EQ(report["cordon"]["after"], Json(nullptr));
  EXPECT_EQ(report["cordon"]["owner"], "");

  errors.text.clear();
  CordonJob uncordon_job(mine, settings_of({"uncordon", "n1", "n2"}));
  EXPECT_EQ(run_job(uncordon_job, 2s), 143);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("whether node/n1 is cordoned now is not known"),
                                 HasSubstr("interrupted; not done: n2\n")));
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

// A picture of all nodes in one file, whatever became of the drain.
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
                                   HasSubstr("</svg>")));
  EXPECT_EQ(errors.text.find("--timeline"), std::string::npos) << errors.text;
}

TEST_F(JobsTest, ATimelineThatCannotBeWrittenIsWrongUsageAndTouchesNothing) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"drain", "n1", "--timeline", "/nonexistent/timeline.svg"}), 2);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("--timeline"), HasSubstr("/nonexistent")));
  EXPECT_FALSE(cordoned("n1"));
  EXPECT_TRUE(cluster.audit().empty());
}

TEST_F(JobsTest, CordonAndUncordon) {
  EXPECT_EQ(cordon({"cordon", "n1", "n2"}), 0);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_TRUE(cordoned("n2"));
  EXPECT_THAT(cluster.get("nodes", "", "n1").dump(), HasSubstr("jane@desk"));
  EXPECT_EQ(cordon({"cordon", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("node/n1 cordoned\n"), HasSubstr("node/n1 already cordoned\n")));
  EXPECT_EQ(cordon({"uncordon", "n1", "--dry-run=client"}), 0);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_EQ(cordon({"uncordon", "n1"}), 0);
  EXPECT_EQ(cordon({"uncordon", "n1"}), 0);
  EXPECT_FALSE(cordoned("n1"));
  EXPECT_THAT(cluster.get("nodes", "", "n1").dump(), Not(HasSubstr("jane@desk"))) << "the mark goes, too";
  EXPECT_THAT(text.text, AllOf(HasSubstr("node/n1 uncordoned (dry run)\n"), HasSubstr("node/n1 uncordoned\n"),
                               HasSubstr("node/n1 already uncordoned\n")));
}

TEST_F(JobsTest, UncordonWarnsWhenAnAgentHoldsTheNode) {
  for (const char* state : {"draining", "idle"}) {
    cluster.cordon("n1");
    cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", state}}}}}});
    errors.text.clear();
    EXPECT_EQ(cordon({"uncordon", "n1"}), 0);
    EXPECT_FALSE(cordoned("n1"));
    EXPECT_EQ(errors.text.find("an agent holds node/n1 (state draining)") != std::string::npos,
              state == std::string("draining"))
        << errors.text;
  }
}

}  // namespace
}  // namespace haulout::agent
