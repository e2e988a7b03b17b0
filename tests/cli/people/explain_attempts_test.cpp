// Tests how `haulout explain` shows the results of the last attempts to update a node.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/people/explanation.hpp"
#include "tests/cli/people/samples.hpp"

namespace haulout::cli {
namespace {

using namespace samples;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string lines_of(const Explanation& about) {
  std::string text;
  for (const std::string& line : explanation_text(about)) text += line + "\n";
  return text;
}

TEST(ExplainAttempts, TheLastAttemptsAreToldWithTheirCausesTheNewestFirst) {
  k8s::Node node = node_in("n1", agent::State::pending, "OutsideWindow", "the window opens at 22:00");
  remember(node, [](agent::Record& record) {
    record.attempts = {{now - 26h, "Updated", "version 1.0 runs"},
                       {now - 3h, "DrainBlocked", "pod shop/db-0 is blocked by budget db"}};
  });
  const Explanation about = explain({.node = node}, now);
  const std::string text = lines_of(about);
  const std::size_t head = text.find("Last attempts:\n");
  ASSERT_NE(head, std::string::npos) << text;
  const std::size_t blocked = text.find("3h ago", head), updated = text.find("26h ago", head);
  ASSERT_NE(updated, std::string::npos) << text;
  EXPECT_LT(blocked, updated);
  EXPECT_THAT(text.substr(blocked, updated - blocked),
              AllOf(HasSubstr("DrainBlocked"), HasSubstr("pod shop/db-0 is blocked by budget db")));
  EXPECT_THAT(text.substr(updated), AllOf(HasSubstr("Updated"), HasSubstr("version 1.0 runs")));
  const Json json = Json::parse(explanation_json(about));
  ASSERT_EQ(json["lastAttempts"].size(), 2u) << json.dump();
  EXPECT_EQ(json["lastAttempts"][1]["reason"], "DrainBlocked");
  EXPECT_EQ(json["lastAttempts"][1]["why"], "pod shop/db-0 is blocked by budget db");
}

TEST(ExplainAttempts, NoAttemptsAreNoTable) {
  const std::string text = lines_of(explain({.node = node_in("n1", agent::State::idle)}, now));
  EXPECT_THAT(text, Not(HasSubstr("Last attempts")));
}

}  // namespace
}  // namespace haulout::cli
