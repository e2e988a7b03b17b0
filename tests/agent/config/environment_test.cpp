#include "tests/agent/config/support.hpp"

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

// The manifests set packaged defaults. They must not override what a user writes into the configuration file.
TEST(EnvironmentTest, PackagedDefaultsComeBehindEverythingElse) {
  const Variables packaged = {{"HAULOUT_DEFAULT_METRICS_ADDRESS", ":9797"}, {"HAULOUT_DEFAULT_LOG_FORMAT", "json"}};
  EXPECT_EQ(config_of({}, packaged).metrics_address, ":9797");
  EXPECT_EQ(config_of({}, packaged).log_format, LogFormat::json);
  EXPECT_EQ(config_of({}, packaged, a_file("metrics-address: ':8080'\n")).metrics_address, ":8080");
  EXPECT_EQ(config_of({}, packaged, a_file("metrics-address: ''\n")).metrics_address, "") << "off";
  Variables both = packaged;
  both.emplace("HAULOUT_METRICS_ADDRESS", ":7070");
  EXPECT_EQ(config_of({}, both, a_file("metrics-address: ':8080'\n")).metrics_address, ":7070");
  EXPECT_EQ(config_of({{"metrics-address", ":6060"}}, both).metrics_address, ":6060");
  EXPECT_THAT(problems_of({}, {{"HAULOUT_DEFAULT_METRICS_ADDRESS", "nonsense"}}),
              ::testing::HasSubstr("HAULOUT_DEFAULT_METRICS_ADDRESS"));
  EXPECT_EQ(config_of({}, {{"HAULOUT_DEFAULT_CHECK", "true"}}), AgentConfig());
  EXPECT_THAT(environment_warnings(packaged), IsEmpty());
  EXPECT_THAT(environment_warnings({{"HAULOUT_DEFAULT_METRICS_ADRESS", ":1"}}),
              ElementsAre("HAULOUT_DEFAULT_METRICS_ADRESS is ignored; did you mean HAULOUT_DEFAULT_METRICS_ADDRESS?"));
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
