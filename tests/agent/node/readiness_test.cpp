#include "agent/node/readiness.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

TEST(Readiness, ParsesConditions) {
  struct Row {
    const char* text;
    WantedCondition condition;
  };
  const Row table[] = {
      {"NetworkReady", {"NetworkReady", "True"}},
      {"KernelDeadlock=False", {"KernelDeadlock", "False"}},
      {"example.com/gpu-ready=Unknown", {"example.com/gpu-ready", "Unknown"}},
  };
  for (const Row& row : table) {
    const auto condition = parse_condition(row.text);
    ASSERT_TRUE(condition) << row.text;
    EXPECT_EQ(*condition, row.condition) << row.text;
  }
}

TEST(Readiness, RefusesOtherTexts) {
  struct Row {
    const char* text;
    const char* says;
  };
  const Row table[] = {
      {"", "the type of a condition is not \"\""},
      {"=True", "the type of a condition is not \"\""},
      {"Network Ready", "the type of a condition is not \"Network Ready\""},
      {"NetworkReady=true", "the status of a condition is not \"true\""},
      {"NetworkReady=", "the status of a condition is not \"\""},
      {"NetworkReady=True=True", "the status of a condition is not \"True=True\""},
  };
  for (const Row& row : table) {
    const auto condition = parse_condition(row.text);
    ASSERT_FALSE(condition) << row.text;
    EXPECT_THAT(condition.error().message(), HasSubstr(row.says)) << row.text;
    EXPECT_THAT(condition.error().message(), HasSubstr("write it like NetworkReady")) << row.text;
  }
}

TEST(Readiness, NamesWhatIsMissing) {
  const std::vector<WantedCondition> wanted{{"NetworkReady", "True"}, {"KernelDeadlock", "False"}};
  k8s::Node well;
  well.conditions = {{"KernelDeadlock", "False"}, {"NetworkReady", "True"}};
  struct Row {
    const char* name;
    std::function<void(k8s::Node&)> change;
    const char* says;  // empty: nothing is missing
  };
  const Row table[] = {
      {"well", [](k8s::Node&) {}, ""},
      {"another taint", [](k8s::Node& node) { node.taints = {{"example.com/gpu", "NoSchedule", {}}}; }, ""},
      {"a readiness taint", [](k8s::Node& node) { node.taints = {{"readiness.k8s.io/Network", "NoSchedule", {}}}; },
       "the taint readiness.k8s.io/Network"},
      {"another status", [](k8s::Node& node) { node.conditions[0].status = "True"; },
       "condition KernelDeadlock is True; it must be False"},
      {"no condition", [](k8s::Node& node) { node.conditions.pop_back(); },
       "no condition NetworkReady yet; it must be True"},
  };
  for (const Row& row : table) {
    k8s::Node node = well;
    row.change(node);
    if (*row.says)
      EXPECT_THAT(not_shown_yet(node, wanted), HasSubstr(row.says)) << row.name;
    else
      EXPECT_EQ(not_shown_yet(node, wanted), "") << row.name;
  }
}

TEST(Readiness, WithoutConditionsOnlyTheTaintsCount) {
  k8s::Node node;
  EXPECT_EQ(not_shown_yet(node, {}), "");
  node.taints = {{"readiness.k8s.io/Network", "NoExecute", {}}};
  EXPECT_THAT(not_shown_yet(node, {}), HasSubstr("readiness.k8s.io/Network"));
}

}  // namespace
}  // namespace haulout::agent
