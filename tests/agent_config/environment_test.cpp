#include "tests/agent_config/support.hpp"

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

TEST(EnvironmentTest, ListsAreSplitAtSemicolons) {
  const auto selectors = [](const std::string& value) {
    return config_of({}, {{"HAULOUT_BLOCKING_POD_SELECTOR", value}}).blocking_pod_selectors;
  };
  EXPECT_EQ(selectors("a"), Strings{"a"});
  EXPECT_EQ(selectors("a in (b, c), d; e"), (Strings{"a in (b, c), d", "e"}));
  EXPECT_EQ(selectors("; a ;; b;"), (Strings{"a", "b"}));
  EXPECT_EQ(selectors(" ; "), Strings{});
}

TEST(EnvironmentTest, OtherVariablesDoNothing) {
  const Variables others = {
      {"POOL", "x"},          {"HAULOUT", "x"},          {"haulout_pool", "x"},      {"HAULOUT_pool", "x"},
      {"XHAULOUT_POOL", "x"}, {"HAULOUT_CHECK", "true"}, {"HAULOUT_RELEASE", "true"}};
  EXPECT_EQ(config_of({}, others), AgentConfig());
}

TEST(EnvironmentTest, MisspeltVariablesWarn) {
  const auto warnings = [](const std::string& name) { return environment_warnings({{name, "x"}}); };
  EXPECT_THAT(warnings("HAULOUT_POOOL"), ElementsAre("HAULOUT_POOOL is ignored; did you mean HAULOUT_POOL?"));
  EXPECT_THAT(warnings("HAULOUT_WINDOWS"), ElementsAre("HAULOUT_WINDOWS is ignored; did you mean HAULOUT_WINDOW?"));
  EXPECT_THAT(warnings("HAULOUT_NODENAME"),
              ElementsAre("HAULOUT_NODENAME is ignored; did you mean HAULOUT_NODE_NAME?"));
  EXPECT_THAT(warnings("HAULOUT_MAX-UNAVAILABLE"),
              ElementsAre("HAULOUT_MAX-UNAVAILABLE is ignored; did you mean HAULOUT_MAX_UNAVAILABLE?"));
  EXPECT_THAT(warnings("HAULOUT_CHECK"), ElementsAre("HAULOUT_CHECK is ignored: --check is a flag only"));
  EXPECT_THAT(warnings("HAULOUT_RELEASE"), ElementsAre("HAULOUT_RELEASE is ignored: --release is a flag only"));
  EXPECT_EQ(problems_of({}, {{"HAULOUT_POOOL", "x"}}), "") << "a warning is no error";
}

TEST(EnvironmentTest, OptionsAndWhatKubernetesInjectsDoNotWarn) {
  Variables variables = {{"HAULOUT_SERVICE_HOST", "10.0.0.1"},
                         {"HAULOUT_SERVICE_PORT", "443"},
                         {"HAULOUT_SERVICE_PORT_HTTPS", "443"},
                         {"HAULOUT_PORT", "tcp://10.0.0.1:443"},
                         {"HAULOUT_PORT_443_TCP", "tcp://10.0.0.1:443"},
                         {"HAULOUT_PORT_443_TCP_PROTO", "tcp"},
                         {"HAULOUT_PORT_443_TCP_PORT", "443"},
                         {"HAULOUT_PORT_443_TCP_ADDR", "10.0.0.1"},
                         {"HAULOUT_METRICS_SERVICE_HOST", "10.0.0.2"},
                         {"HAULOUT_POOL_PORT", "tcp://10.0.0.2:80"},
                         {"HAULOUT_POOL_PORT_80_UDP_ADDR", "10.0.0.2"},
                         {"HAULOUT_E2E_BIN", "/usr/bin"},
                         {"HAULOUT_UPDATE_DOCS", "1"},
                         {"HAULOUT_", ""},
                         {"PATH", "/bin"},
                         {"XHAULOUT_POOOL", "x"}};
  for (const Option* option : options())
    if (option->home != Option::Home::flag_only) variables.emplace(option->variable(), "");
  EXPECT_THAT(environment_warnings(variables), IsEmpty());
}

}  // namespace
}  // namespace haulout::agent
