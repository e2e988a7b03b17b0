// Tests P8, never silently stuck: the lines, the live view, the JSON lines, the report and the summary show the same
// reason for which a pod waits.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/report/reasons.hpp"
#include "cli/drain/report_json.hpp"
#include "cli/drain/wording.hpp"
#include "cli/terminal/live_view.hpp"
#include "tests/cli/drain/samples.hpp"

namespace haulout::cli {
namespace {

using drain::EventType;
using drain::PodOutcome;
using ::testing::Contains;
using ::testing::HasSubstr;

// Returns the reasons of docs/reasons.md that a waiting pod can have.
std::vector<std::string> reasons_of_pods() {
  std::vector<std::string> all;
  for (const agent::Reason& reason : agent::reasons())
    if (reason.group == agent::find_reason("BlockedByBudget")->group) all.emplace_back(reason.name);
  return all;
}

TEST(P8_NeverSilentlyStuck, EveryReasonIsToldAlikeEverywhere) {
  const Wording wording{drain::DryRunMode::none, false, "haulout"};
  ASSERT_THAT(reasons_of_pods(), ::testing::IsSupersetOf({"BlockedByBudget", "SingleReplica", "VolumesInTurn"}));
  for (const std::string& reason : reasons_of_pods()) {
    const std::string cause = "because of " + reason;
    const auto pod = samples::pod("web-0", PodOutcome::waiting, reason, cause);
    const auto parked = samples::event(EventType::parked, 1, &pod);
    const auto line = line_of(parked, wording);
    ASSERT_TRUE(line) << reason;
    EXPECT_THAT(*line, ::testing::AllOf(HasSubstr("shop/web-0"), HasSubstr(cause), HasSubstr(reason)));

    LiveState state;
    state.apply(parked);
    EXPECT_THAT(render({state}, {160, 24, true, false}, samples::at(9)),
                Contains(::testing::AllOf(HasSubstr("shop/web-0"), HasSubstr(cause))));

    const auto told = nlohmann::json::parse(event_json(parked));
    EXPECT_THAT(told.dump(), ::testing::AllOf(HasSubstr("\"" + reason + "\""), HasSubstr(cause)));

    const auto report = samples::report(drain::Outcome::blocked, {pod});
    EXPECT_EQ(nlohmann::json::parse(report_json(report))["pods"][0]["reason"], reason);
    const Summary text = summary(report, wording);
    EXPECT_THAT(text.errors, Contains(::testing::AllOf(HasSubstr("shop/web-0"), HasSubstr(cause)))) << reason;
  }
}

}  // namespace
}  // namespace haulout::cli
