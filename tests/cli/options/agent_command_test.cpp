// Tests the command line of `haulout agent`. Its flags come from the table of options.
#include "agent/config/option_table.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Args = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs noted(const Args& args) {
  auto result = parse_command_line("haulout", args);
  if (const auto* immediate = std::get_if<Immediate>(&result)) {
    ADD_FAILURE() << immediate->err << immediate->out;
    return {};
  }
  EXPECT_EQ(std::get<Settings>(result).command, Command::agent);
  return std::get<Settings>(result).agent_options;
}

Immediate refused(const Args& args) {
  auto result = parse_command_line("haulout", args);
  if (const auto* immediate = std::get_if<Immediate>(&result)) return *immediate;
  ADD_FAILURE() << "was accepted";
  return {};
}

TEST(AgentCommandTest, NotesWhatWasGiven) {
  EXPECT_THAT(noted({"agent"}), IsEmpty());
  EXPECT_THAT(noted({"agent", "--pool=a"}), ElementsAre(Pair("pool", "a")));
  EXPECT_THAT(noted({"agent", "--pool", "a"}), ElementsAre(Pair("pool", "a")));
  EXPECT_THAT(noted({"agent", "--pool="}), ElementsAre(Pair("pool", ""))) << "given and empty";
  EXPECT_THAT(noted({"agent", "--window", "a", "--window=b"}), ElementsAre(Pair("window", "a"), Pair("window", "b")));
  EXPECT_THAT(noted({"agent", "--check"}), ElementsAre(Pair("check", "true")));
  EXPECT_THAT(noted({"agent", "--check=false"}), ElementsAre(Pair("check", "false")));
  EXPECT_THAT(noted({"agent", "-n", "ops", "-v2"}), ElementsAre(Pair("namespace", "ops"), Pair("verbosity", "2")));
  EXPECT_THAT(noted({"agent", "--sentinel-command", "/bin/x -r"}), ElementsAre(Pair("sentinel-command", "/bin/x -r")));
  EXPECT_THAT(noted({"agent", "--soak=nonsense"}), ElementsAre(Pair("soak", "nonsense"))) << "judged by read_config()";
}

TEST(AgentCommandTest, EveryOptionIsAFlag) {
  for (const agent::Option* option : agent::options()) {
    const bool boolean = option->values.type == ValueType::boolean;
    const std::string value = boolean ? "true" : "x";
    const Args args = boolean ? Args{"agent", "--" + option->name} : Args{"agent", "--" + option->name, value};
    EXPECT_THAT(noted(args), ElementsAre(Pair(option->name, value)));
  }
}

TEST(AgentCommandTest, FlagsBeforeTheCommandAreItsOwnOrRefused) {
  EXPECT_THAT(noted({"--kubeconfig", "k", "-v", "1", "agent"}),
              ElementsAre(Pair("kubeconfig", "k"), Pair("verbosity", "1")));
  EXPECT_THAT(noted({"-n", "a", "agent", "--namespace=b"}), ElementsAre(Pair("namespace", "a"), Pair("namespace", "b")))
      << "the last one wins";
  EXPECT_THAT(refused({"--context", "c", "agent"}).err, HasSubstr("agent has no flag --context"));
}

struct BadRow {
  Args args;
  std::string says;
};

TEST(AgentCommandTest, BadUsageIsExitCode2) {
  const std::vector<BadRow> rows = {
      {{"agent", "n1"}, "agent takes no arguments: remove \"n1\" (--node-name sets the node of the agent)"},
      {{"agent", "--", "n1"}, "agent takes no arguments"},
      {{"agent", "--max-unavailble=2"}, "did you mean --max-unavailable?"},
      {{"agent", "--force"}, "unknown flag --force"},
      {{"agent", "--soak"}, "--soak needs a value"},
      {{"agent", "--token=x"}, "unknown flag --token"},
      {{"agnet"}, "did you mean agent?"},
      {{"drain", "n1", "--soak=5m"}, "unknown flag --soak"},
  };
  for (const BadRow& row : rows) {
    const Immediate immediate = refused(row.args);
    EXPECT_EQ(immediate.exit_code, 2) << ::testing::PrintToString(row.args);
    EXPECT_THAT(immediate.err, HasSubstr(row.says)) << ::testing::PrintToString(row.args);
  }
}

TEST(AgentCommandTest, HelpHasEveryFlagInItsGroup) {
  for (const Args& args : std::vector<Args>{{"agent", "--help"}, {"agent", "-h"}, {"help", "agent"}}) {
    const Immediate immediate = refused(args);
    EXPECT_EQ(immediate.exit_code, 0);
    std::size_t at = 0;
    for (const agent::OptionGroup& group : agent::option_groups()) {
      at = immediate.out.find("\n" + group.title + ":\n", at);
      ASSERT_NE(at, std::string::npos) << group.title;
      for (const agent::Option& option : group.options) {
        const std::string shown = option.shown_default();
        at = immediate.out.find("--" + option.name + (shown.empty() ? "\n" : "=" + shown), at);
        ASSERT_NE(at, std::string::npos) << option.name;
      }
    }
  }
  EXPECT_THAT(refused({"--help"}).out, HasSubstr("  agent "));
}

}  // namespace
}  // namespace haulout::cli
