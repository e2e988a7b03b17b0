#include "agent/lifecycle/shutdown.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using drain::Outcome;
using drain::PodOutcome;

TEST(Leaving, DependsOnWhatIsInForce) {
  const auto leaving = [](State state, bool uncordon = false, std::string run = "run-1") {
    Record record;
    record.state = state;
    record.run = std::move(run);
    record.uncordon = uncordon;
    return leaving_of(record);
  };
  for (const State state :
       {State::unknown, State::idle, State::pending, State::waiting, State::uncordoning, State::soaking})
    EXPECT_EQ(leaving(state), Leaving::drains) << to_string(state);
  EXPECT_EQ(leaving(State::draining), Leaving::draining);
  for (const State state : {State::ready, State::rebooting, State::verifying})
    EXPECT_EQ(leaving(state), Leaving::has_left) << to_string(state);
  EXPECT_EQ(leaving(State::degraded, true), Leaving::drains) << "it takes pods again";
  EXPECT_EQ(leaving(State::degraded, false), Leaving::has_left);
  for (const State state : {State::verifying, State::degraded})
    EXPECT_EQ(leaving(state, false, ""), Leaving::drains) << "went down while it soaked: " << to_string(state);
}

drain::Report report_of(Outcome outcome, std::vector<PodOutcome> pods) {
  drain::Report report;
  report.outcome = outcome;
  report.message = "the drain's own words";
  for (const PodOutcome each : pods) {
    drain::PodReport pod;
    pod.ns = "shop";
    pod.name = "web-" + std::to_string(report.pods.size());
    pod.outcome = each;
    if (each == PodOutcome::waiting) pod.reason = "BlockedByBudget";
    report.pods.push_back(std::move(pod));
  }
  return report;
}

TEST(Leaving, SaysWhatHasLeftAndWhatHasNot) {
  using enum PodOutcome;
  struct Row {
    Outcome outcome;
    std::vector<PodOutcome> pods;
    std::string reason, message;
  };
  const std::string shutdown = "a person or program is shutting the machine down; ";
  const std::string before = " evicted and deleted in the meantime";
  const std::vector<Row> rows{
      {Outcome::drained, {}, "ShutdownDrained", shutdown + "no pod had to leave"},
      {Outcome::drained, {evicted, skipped}, "ShutdownDrained", shutdown + "1 of 1 pod was" + before},
      {Outcome::drained,
       {evicted, gone},
       "ShutdownDrained",
       shutdown + "1 of 2 pods was" + before +
           "; 1 pod ended without an eviction, through the kubelet (shutdownGracePeriod) or another client"},
      {Outcome::blocked,
       {evicted, waiting},
       "ShutdownUndrained",
       shutdown + "1 of 2 pods was" + before + "; 1 pod is still on the node: shop/web-1 (BlockedByBudget)"},
      {Outcome::blocked,
       {terminating, waiting, skipped, planned},
       "ShutdownUndrained",
       shutdown + "0 of 3 pods were" + before + "; 3 pods are still on the node: shop/web-0 (terminating) and 2 more"},
      {Outcome::blocked,
       {evicted},
       "ShutdownUndrained",
       shutdown + "1 of 1 pod was" + before + "; the drain's own words"},
      {Outcome::failed,
       {waiting},
       "ShutdownUndrained",
       shutdown + "0 of 1 pod was" + before +
           "; 1 pod is still on the node: shop/web-0 (BlockedByBudget); the drain's own words"},
      {Outcome::refused, {waiting}, "ShutdownUndrained", "the drain's own words"},
  };
  for (const Row& row : rows) {
    const LeavingResult result = leaving_result(report_of(row.outcome, row.pods));
    EXPECT_EQ(result.reason, row.reason);
    EXPECT_EQ(result.message, row.message);
  }
}

}  // namespace
}  // namespace haulout::agent
