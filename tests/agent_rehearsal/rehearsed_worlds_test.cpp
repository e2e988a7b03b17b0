// What real clusters have that a drain depends on, and what a rehearsal makes of it.
#include "tests/agent_rehearsal/rehearsal_fixture.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(RehearsalTest, APodOfARunningJobLeaves) {
  items.push_back(pod("report-x", "Job", "report", "100m"));
  items.back()["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1";
  items.back()["metadata"]["finalizers"] = {"batch.kubernetes.io/job-tracking"};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_LE(rehearsal.took, 27s);
}

TEST_F(RehearsalTest, OfADeadNodeNothingEnds) {
  silence("n1");
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::blocked);
  EXPECT_EQ(exit_code(rehearsal), 1);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("pod shop/web-a would still be there"), HasSubstr("kubelet")));
  EXPECT_THAT(rehearsal.assumed,
              Contains("where Ready is Unknown no kubelet runs, so that no pod ends there: node n1"));
}

TEST_F(RehearsalTest, ADeadNodeIsNoRefugeAndHoldsNobodyUp) {
  add_node("n3", "2");
  silence("n3");
  items.push_back(pod("web-d", "ReplicaSet", "web", "500m", "n3"));
  item("web")["spec"]["replicas"] = 4;
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_EQ(exit_code(rehearsal), 0) << lines_of(rehearsal);
}

// The API server writes requests into pods, not into templates.
TEST_F(RehearsalTest, ReplacementsAskForWhatTheirPodsDo) {
  item("n2")["status"]["allocatable"]["cpu"] = "1";
  item("web")["spec"]["template"]["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "500m"}}}};
  EXPECT_THAT(play().no_room, SizeIs(2)) << "beside the DaemonSet's pod there is room for one";
}

}  // namespace
}  // namespace haulout::agent
