// What real clusters have that a drain depends on, and what a rehearsal makes of it.
#include "tests/agent_rehearsal/rehearsal_fixture.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

TEST_F(RehearsalTest, APodOfARunningJobLeaves) {
  items.push_back(pod("report-x", "Job", "report", "100m"));
  items.back()["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1";
  items.back()["metadata"]["finalizers"] = {"batch.kubernetes.io/job-tracking"};
  const Rehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.drains[0].outcome, drain::Outcome::drained);
  EXPECT_LE(rehearsal.took, 27s);
}

}  // namespace
}  // namespace haulout::agent
