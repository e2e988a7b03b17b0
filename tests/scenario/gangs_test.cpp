// Gangs, which are groups of pods that run only as a whole (--gangs), on the simulated cluster.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
namespace {
using namespace std::chrono_literals;
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using drain::Treatment;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::UnorderedElementsAre;

class Gangs : public Scenario {
 protected:
  void add_member(const std::string& name, PodSpec spec = {}) {
    spec.owner_kind = "Job";
    spec.owner_api = "batch/v1";
    spec.labels["jobset.sigs.k8s.io/jobset-name"] = "train";
    add(a_pod(name, spec));
  }
  void set_status(const std::string& name, const char* phase) {
    cluster.patch("pods", "shop", name,
                  {{"status", {{"phase", phase}, {"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}});
  }
  void blocked_by_a_member_of(const char* job_set) {
    add_member("train-0");
    add(a_pod("kept", {.owner_kind = "Job",
                       .owner_api = "batch/v1",
                       .labels = {{"jobset.sigs.k8s.io/jobset-name", job_set}},
                       .annotations = {{"karpenter.sh/do-not-disrupt", "true"}}}));
    options.timeout = 10min;
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::blocked));
    EXPECT_THAT(evictions(), IsEmpty());
    EXPECT_EQ(pod(report, "train-0").reason, "WaitingForOtherPods");
    EXPECT_THAT(pod(report, "train-0").message,
                HasSubstr("until pod shop/kept has left, which must wait, too (DoNotDisrupt)"));
  }
  std::vector<std::string> evicted() const {
    std::vector<std::string> names;
    for (const auto& entry : evictions()) names.push_back(entry.name);
    return names;
  }
};

TEST_F(Gangs, MembersAreEvictedTogetherWhenAllOthersAreDeleted) {
  add_member("train-0", {.spec = {{"priority", -100}}});
  add_member("train-1", {.annotations = {{"haulout.dev/drain-order", "-5"}}});
  add_pods(2, {.grace = 60, .annotations = {{"sim.haulout.dev/terminates-after", "60s"}}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  ASSERT_EQ(evictions().size(), 4u);
  EXPECT_THAT(evicted(), UnorderedElementsAre("web-0", "web-1", "train-0", "train-1"));
  for (const char* member : {"train-0", "train-1"}) EXPECT_GE(sent_at(member) - sent_at("web-0"), 60s);
  EXPECT_LT(sent_at("train-0") - sent_at("train-1"), 1s) << "the run is stopped once";
  EXPECT_TRUE(told.advised("GangBroken"));
  EXPECT_THAT(told.message_of("GangBroken"), HasSubstr("pods shop/train-1, shop/train-0 are members;"));
  EXPECT_LE(told.time_of(EventType::diagnosis_raised, "GangBroken"), sent_at("train-0") - 60s)
      << "said before, not when it is too late";
}

// A run must not be stopped for a drain that does not come to its end.
TEST_F(Gangs, NoGangIsBrokenWhileAnotherPodBlocksTheDrain) {
  add_member("train-0");
  add(a_pod("web", {.labels = {{"app", "web"}}}));
  add(a_budget("web", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  options.timeout = 10min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(pods_on("n1"), UnorderedElementsAre("train-0", "web"));
  for (const std::string& name : evicted()) EXPECT_EQ(name, "web");
  EXPECT_TRUE(told.raised("GangBroken"));
}

TEST_F(Gangs, NoGangIsBrokenWhileOneOfItsMembersMustStay) {
  blocked_by_a_member_of("train");
}

TEST_F(Gangs, NoGangIsBrokenWhileAMemberOfAnotherGangMustStay) {
  blocked_by_a_member_of("unlike");
}

// The rule lets the drain wait for one run. Meanwhile the other one goes on.
TEST_F(Gangs, AGangWaitsForAnotherThatARuleLetsFinish) {
  add_member("train-0");
  add(a_pod("test-0", {.owner_kind = "Job",
                       .owner_api = "batch/v1",
                       .labels = {{"jobset.sigs.k8s.io/jobset-name", "test"}, {"app", "test"}}}));
  options.policy.rules.push_back(drain::parse_pod_rule("app=test=wait-completed=12h").value());
  after(2h, [this] { EXPECT_THAT(evictions(), IsEmpty()); });
  after(3h, [this] { set_status("test-0", "Succeeded"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("train-0"));
}

TEST_F(Gangs, ARunThatIsContinuedIsNotRefusedForAMemberThatCameLate) {
  options.policy.gangs = Treatment::refuse;
  options.run_id = "7";
  add_pods(1);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  add_member("train-0");
  after(5min, [this] { set_status("train-0", "Succeeded"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained)) << report.message;
  EXPECT_TRUE(told.raised("GangMember"));
  EXPECT_THAT(evicted(), ElementsAre("web-0"));
}

TEST_F(Gangs, AGangOfAPodGroupIsRecognizedByItsField) {
  add(a_pod("a", {.spec = {{"schedulingGroup", {{"podGroupName", "train"}}}}}));
  options.policy.gangs = Treatment::refuse;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message,
              HasSubstr("PodGroup shop/train runs only as a whole, and has members on the node: shop/a"));
}

TEST_F(Gangs, ADrainThatMayNotBreakAGangTouchesNothing) {
  add_member("train-0");
  add_member("train-1");
  add_pods(1);
  options.policy.gangs = Treatment::refuse;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::refused));
  EXPECT_THAT(report.message, HasSubstr("JobSet shop/train runs only as a whole, and has members on the node: "
                                        "shop/train-0, shop/train-1 (GangMember)"));
  EXPECT_THAT(report.message, HasSubstr("evicts none: JobSet")) << "each member is named once";
  EXPECT_EQ(pod(report, "train-0").reason, "GangMember");
  EXPECT_FALSE(unschedulable());
  EXPECT_THAT(evictions(), IsEmpty());
}

TEST_F(Gangs, ALateMemberIsParkedIfGangsMayNotBeBroken) {
  add_pods(1, {.grace = 30, .annotations = {{"sim.haulout.dev/terminates-after", "30s"}}});
  options.policy.gangs = Treatment::refuse;
  after(2s, [this] { add_member("train-0"); });
  after(5min, [this] { set_status("train-0", "Succeeded"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("web-0"));
  EXPECT_TRUE(told.raised("GangMember"));
  EXPECT_THAT(took(), AllOf(Ge(5min), Lt(6min)));
}

TEST_F(Gangs, ADrainWaitsUntilTheMembersHaveFinished) {
  add_member("train-0");
  add_member("train-1");
  add_pods(2);
  options.policy.gangs = Treatment::park;
  after(30min, [this] { set_status("train-0", "Succeeded"); });
  after(40min, [this] { set_status("train-1", "Failed"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(evicted(), UnorderedElementsAre("web-0", "web-1")) << "the members hold up no other pod";
  EXPECT_EQ(pod(report, "train-0").reason, "Finished");
  EXPECT_THAT(took(), AllOf(Ge(40min), Lt(41min)));
  EXPECT_TRUE(told.raised("WaitingForGang"));
  EXPECT_FALSE(told.raised("GangBroken"));
}

TEST_F(Gangs, NothingWaitsForAGangThatIsBrokenAlready) {
  add_member("train-0");
  add_member("train-1", {.grace = 60, .annotations = {{"sim.haulout.dev/terminates-after", "60s"}}});
  options.policy.gangs = Treatment::park;
  after(10min, [this] { cluster.delete_gracefully("pods", "shop", "train-1"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("train-0"));
  EXPECT_THAT(took(), AllOf(Ge(10min), Lt(12min)));
}

TEST_F(Gangs, ARuleComesBeforeTheOptionAndCanLimitTheWait) {
  add_member("train-0");
  options.policy.gangs = Treatment::refuse;
  options.policy.rules.push_back(drain::parse_pod_rule("jobset.sigs.k8s.io/jobset-name=wait-completed=10m").value());
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(evicted(), ElementsAre("train-0"));
  EXPECT_THAT(took(), AllOf(Ge(10min), Lt(11min)));
}

TEST_F(Gangs, ADryRunSaysWhichGangsTheDrainWouldBreak) {
  add_member("train-0");
  add_pods(1);
  options.dry_run = drain::DryRunMode::client;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(report.message,
              AllOf(HasSubstr("JobSet shop/train: pod shop/train-0 is a member"), HasSubstr("[GangBroken]")));
  options.policy.gangs = Treatment::park;
  const auto waiting = drain();
  EXPECT_THAT(waiting, Ended(Outcome::blocked));
  EXPECT_EQ(pod(waiting, "train-0").reason, "WaitingForGang");
}

// The member needs no room elsewhere, because it is never evicted.
TEST_F(Gangs, AMemberThatIsWaitedForNeedsNoRoomElsewhere) {
  add(a_node("n2"));
  add_member("train-0",
             {.spec = {{"containers", {{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1000"}}}}}}}}}});
  options.fit = drain::FitPolicy::block;
  EXPECT_THAT(drain(), Ended(Outcome::refused));
  options.policy.gangs = Treatment::park;
  after(5min, [this] { set_status("train-0", "Succeeded"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

}  // namespace
}  // namespace haulout::scenario
