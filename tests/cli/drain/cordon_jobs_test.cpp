// Tests cordon and uncordon, and what they share with a drain of several nodes: how long they retry, and how they
// report names that do not exist.
#include <fmt/format.h>

#include "tests/cli/drain/jobs_fixture.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  restarting.add(
      {.verb = "", .resource = "", .until = clock.now() + 20s, .fault = {.kind = sim::FaultKind::server_error}});
  k8s::Client other(restarting, clock);
  CordonJob job(tools(other), settings_of({"cordon", "n1"}));
  EXPECT_EQ(run_job(job), 0);
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_THAT(errors.text, HasSubstr("waiting for the API server: "));
}

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
  EXPECT_THAT(errors.text, AllOf(HasSubstr("nodes n8, n9 do not exist"), HasSubstr("nothing was changed")));
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

// The node is cordoned already, so the command sets no cordon that the agent would leave.
TEST_F(JobsTest, CordonWarnsOfTheCordonOfAnAgent) {
  const std::string mark = drain::encode_mark({"run", "agent", clock.wall_now()});
  cluster.patch("nodes", "", "n1",
                {{"spec", {{"unschedulable", true}}},
                 {"metadata",
                  {{"labels", {{"haulout.dev/state", "degraded"}}}, {"annotations", {{"haulout.dev/cordon", mark}}}}}});
  EXPECT_EQ(cordon({"cordon", "n1", "n2"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("node/n1 already cordoned\n"), HasSubstr("node/n2 cordoned\n")));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("node/n1 is cordoned by its agent (state degraded), which may reboot or "
                                           "uncordon it at any time: first run haulout pause n1, and haulout uncordon "
                                           "n1, so that this command sets a cordon of its own"),
                                 Not(HasSubstr("node/n2"))));
}

TEST_F(JobsTest, UncordonWarnsWhenAnAgentHoldsTheNode) {
  for (const char* state : {"draining", "idle"}) {
    cluster.cordon("n1");
    cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", state}}}}}});
    errors.text.clear();
    EXPECT_EQ(cordon({"uncordon", "n1"}), 0);
    EXPECT_FALSE(cordoned("n1"));
    EXPECT_EQ(errors.text.find("node/n1 is in state draining, so its agent may cordon it again") != std::string::npos,
              state == std::string("draining"))
        << errors.text;
  }
}

}  // namespace
}  // namespace haulout::cli
