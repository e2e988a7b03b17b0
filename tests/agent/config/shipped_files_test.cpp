// Tests the configuration files of the packages, as they are and with their examples enabled.
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "agent/gates/window.hpp"
#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

class ShippedFileTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string text() {
    std::ifstream file(std::string(HAULOUT_PACKAGING_DIR "/") + GetParam());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns the groups of consecutive comment lines that would be options without the comment sign.
  static std::vector<std::string> examples() {
    const std::regex option("# ([a-z-]+: .*)");
    std::vector<std::string> blocks;
    std::istringstream lines(text());
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      const bool is_option = std::regex_match(line, found, option);
      if (is_option && !inside) blocks.emplace_back();
      if (is_option) blocks.back() += found[1].str() + "\n";
      inside = is_option;
    }
    return blocks;
  }
};

TEST_P(ShippedFileTest, IsAccepted) {
  ASSERT_FALSE(text().empty());
  config_of_file(text());
}

TEST_P(ShippedFileTest, ItsExamplesAreAccepted) {
  ASSERT_FALSE(examples().empty());
  for (const std::string& example : examples()) {
    const AgentConfig config = config_of_file(text() + example);
    EXPECT_NE(config, AgentConfig()) << example;
    for (const std::string& window : config.windows) EXPECT_TRUE(parse_window(window)) << window;
  }
}

// Flags override the configuration file. A flag in the DaemonSet besides these three would silently override a key of
// the user's file.
TEST(ShippedDaemonSetTest, OnlyWhatNoFileCanSayIsAFlag) {
  std::ifstream file(HAULOUT_PACKAGING_DIR "/kustomize/base/daemonset.yaml");
  std::vector<std::string> flags;
  Variables variables;
  const std::regex flag("\\s*- --([a-z-]+)(=.*)?"), variable("\\s*- name: (HAULOUT_[A-Z_]+)"), value("\\s*value: (.*)");
  std::string name;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (std::regex_match(line, found, flag)) flags.push_back(found[1]);
    if (std::regex_match(line, found, value) && !name.empty())
      variables.emplace(std::exchange(name, ""), std::regex_replace(found[1].str(), std::regex("\""), ""));
    if (std::regex_match(line, found, variable)) name = found[1];
  }
  EXPECT_EQ(flags, (std::vector<std::string>{"config", "host-root", "namespace"}));
  EXPECT_EQ(variables.size(), 2u);
  EXPECT_TRUE(environment_warnings(variables).empty());
  EXPECT_EQ(config_of({}, variables).metrics_address, ":9797") << "the port of the probes";
  EXPECT_EQ(config_of({}, variables, a_file("metrics-address: ':9800'\n")).metrics_address, ":9800");
}

INSTANTIATE_TEST_SUITE_P(Packages, ShippedFileTest,
                         ::testing::Values("kustomize/base/config.yaml", "debian/config.yaml"));

}  // namespace
}  // namespace haulout::agent
