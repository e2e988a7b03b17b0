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
    const char* way_out;
  };
  const char* form = "write TYPE or TYPE=STATUS, like example.com/NetworkReady";
  const std::string too_long(317, 'x');
  const Row table[] = {
      {"", "names no type", form},
      {"=True", "names no type", form},
      {"Network Ready", "names no type", form},
      {too_long.c_str(), "names no type", form},
      {"NetworkReady=true", "its status is none", form},
      {"NetworkReady=", "its status is none", form},
      {"NetworkReady=True=True", "its status is none", form},
      // The agent waits for Ready of the current boot in any case, and a condition of its own would make it wait for
      // itself.
      {"Ready", "Ready is the kubelet's condition", "remove this value"},
      {"Ready=False", "Ready is the kubelet's condition", "remove this value"},
      {"HauloutMaintenance=False", "HauloutMaintenance is a condition that the agent itself changes",
       "name a condition of another program"},
      {"HauloutX", "HauloutX is a condition that the agent itself changes", "name a condition of another program"},
      {"MaintenancePlanned=False", "MaintenancePlanned is a condition that the agent itself changes",
       "name a condition of another program"},
      {"DrainInProgress=False", "DrainInProgress is a condition that the agent itself changes",
       "name a condition of another program"},
      {"Drained=False", "Drained is a condition that the agent itself changes", "name a condition of another program"},
      {"MaintenanceInProgress=False", "MaintenanceInProgress is a condition that the agent itself changes",
       "name a condition of another program"},
  };
  for (const Row& row : table) {
    const auto condition = parse_condition(row.text);
    ASSERT_FALSE(condition) << row.text;
    EXPECT_THAT(condition.error().message(), HasSubstr(row.says)) << row.text;
    EXPECT_THAT(condition.error().message(), HasSubstr(row.way_out)) << row.text;
  }
  EXPECT_TRUE(parse_condition("ReadyForPods"));
  EXPECT_TRUE(parse_condition("GracefulNodeShutdownInProgress=False")) << "the kubelet's, and no agent writes it";
}

TEST(Readiness, NamesWhatIsMissing) {
  const std::vector<WantedCondition> wanted{{"NetworkReady", "True"}, {"KernelDeadlock", "False"}};
  const std::string network = "readiness.k8s.io/Network";
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
      {"a taint that is like one", [](k8s::Node& node) { node.taints = {{"readiness.k8s.iox/a", "NoSchedule", {}}}; },
       ""},
      {"a readiness taint", [&](k8s::Node& node) { node.taints = {{network, "NoExecute", {}}}; },
       "the Node has the taint readiness.k8s.io/Network"},
      {"a taint from before the update",
       [](k8s::Node& node) { node.taints = {{"readiness.k8s.io/old", "NoSchedule", {}}}; }, ""},
      {"one from before and a new one",
       [&](k8s::Node& node) {
         node.taints = {{"readiness.k8s.io/old", "NoSchedule", {}}, {network, "NoSchedule", {}}};
       },
       "the Node has the taint readiness.k8s.io/Network"},
      {"another status", [](k8s::Node& node) { node.conditions[0].status = "True"; },
       "the Node's condition KernelDeadlock is True (--verify-condition: False)"},
      {"no valid status", [](k8s::Node& node) { node.conditions[0].status = ""; },
       "the Node's condition KernelDeadlock is without a valid status (--verify-condition: False)"},
      {"no condition", [](k8s::Node& node) { node.conditions.pop_back(); },
       "the Node has no condition NetworkReady (--verify-condition: True)"},
      {"several",
       [&](k8s::Node& node) {
         node.taints = {{network, "NoSchedule", {}}, {network + "2", "NoSchedule", {}}};
         node.conditions.clear();
       },
       "the Node has the taint readiness.k8s.io/Network; the Node has the taint readiness.k8s.io/Network2; the Node "
       "has "
       "no condition NetworkReady (--verify-condition: True); and 1 more"},
  };
  for (const Row& row : table) {
    k8s::Node node = well;
    row.change(node);
    EXPECT_EQ(not_shown_yet(node, {"readiness.k8s.io/old"}, wanted), row.says) << row.name;
  }
}

TEST(Readiness, WithoutConditionsOnlyTheTaintsCount) {
  k8s::Node node;
  EXPECT_EQ(not_shown_yet(node, {}, {}), "");
  node.taints = {{"readiness.k8s.io/Network", "NoExecute", {}}};
  EXPECT_THAT(not_shown_yet(node, {}, {}), HasSubstr("readiness.k8s.io/Network"));
}

// P12: the keys are kept in the record, which must stay small whatever the Node shows.
TEST(Readiness, OnlySoManyTaintsAreRemembered) {
  k8s::Node node;
  node.taints = {{"example.com/gpu", "NoSchedule", {}},
                 {"readiness.k8s.io/" + std::string(400, 'x'), "NoSchedule", {}},
                 {"readiness.k8s.io/a", "NoSchedule", {}},
                 {"readiness.k8s.io/a", "NoExecute", {}}};
  EXPECT_THAT(readiness_taints(node), ::testing::ElementsAre("readiness.k8s.io/a"));
  for (int i = 0; i < 1000; ++i) node.taints.push_back({"readiness.k8s.io/b" + std::to_string(i), "NoSchedule", {}});
  EXPECT_EQ(readiness_taints(node).size(), 20u);
}

}  // namespace
}  // namespace haulout::agent
