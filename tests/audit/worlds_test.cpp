// Audits worlds with the shapes of well-known applications, written as manifests or as snapshots (tests/audit/worlds).
// Each file begins with a comment that lists the expected findings and explains them; this test reads that list.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.hpp"
#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

using ::testing::UnorderedElementsAreArray;

// Returns the expected findings: the lines "#   SEVERITY ID OWNER" of the comment.
std::vector<std::string> expected_in(const std::string& text) {
  std::vector<std::string> expected;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#   ")) expected.push_back(line.substr(4));
  return expected;
}

TEST(Worlds, HaveTheFindingsThatTheirCommentsList) {
  std::size_t worlds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HAULOUT_WORLDS_DIR)) {
    const std::string text = *read_whole_file(entry.path().string());
    AuditInput input;
    input.snapshot = {.documents = {{text, entry.path().string()}}, .read_at = ACluster::now(), .stored = true};
    input.team_labels = {"app.kubernetes.io/part-of"};
    const auto report = audit(input);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_THAT(brief(*report), UnorderedElementsAreArray(expected_in(text))) << entry.path();
    ++worlds;
  }
  EXPECT_EQ(worlds, 6U);
}

}  // namespace
}  // namespace haulout::audit
