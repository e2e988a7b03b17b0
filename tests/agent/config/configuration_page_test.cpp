#include "agent/config/option_table.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

const std::string path = std::string(HAULOUT_DOCS_DIR "/") + "configuration.md";

TEST(ConfigurationPageTest, IsTheOneInTheTree) {
  if (std::getenv("HAULOUT_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::trunc) << configuration_page();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text == configuration_page())
      << "docs/configuration.md is not what the table of options says: run this test with HAULOUT_UPDATE_DOCS=1 in its "
         "environment, and it writes the page anew";
}

TEST(ConfigurationPageTest, HasARowForEveryOption) {
  const std::string page = configuration_page();
  for (const Option* option : options()) {
    EXPECT_THAT(page, HasSubstr("`--" + option->name + "` | ")) << option->name;
    if (!option->shown_default().empty()) EXPECT_THAT(page, HasSubstr("`" + option->shown_default() + "`"));
  }
}

TEST(ConfigurationPageTest, ItsExampleIsAccepted) {
  const std::string page = configuration_page();
  const std::string begin = "```yaml\n";
  const auto start = page.find(begin) + begin.size();
  const std::string example = page.substr(start, page.find("```", start) - start);
  EXPECT_NE(config_of_file(example), AgentConfig());
}

}  // namespace
}  // namespace haulout::agent
