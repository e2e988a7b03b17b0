// Tests what the report of a rehearsal says about a drain that would not end.
#include "cli/rehearse/rehearsal_text.hpp"

#include <gmock/gmock.h>

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string first_line_of(drain::Report report) {
  rehearse::Rehearsal rehearsal;
  report.node = "n1";
  report.outcome = drain::Outcome::blocked;
  report.finished_at = report.started_at + 2h;
  rehearsal.drains.push_back(std::move(report));
  return rehearsal_lines(rehearsal).front();
}

TEST(RehearsalText, ABlockedDrainWithoutTimeoutNamesThePodsThatAreLeft) {
  drain::Report report;
  report.pods.emplace_back();
  EXPECT_THAT(first_line_of(report),
              AllOf(HasSubstr("would not be drained within 2h00m: 1 pod"), HasSubstr("no --timeout")));
}

TEST(RehearsalText, ADrainThatAVolumeBlocksSaysSoAndCountsNoPods) {
  drain::Report report;
  report.message = "volume data is still attached";
  EXPECT_THAT(first_line_of(report), AllOf(HasSubstr("volume data is still attached"), Not(HasSubstr("0 pods"))));
}

}  // namespace
}  // namespace haulout::cli
