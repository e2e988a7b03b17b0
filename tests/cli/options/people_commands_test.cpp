// Tests the command lines of status, explain, pause, resume, request-reboot and completion.
#include <fmt/format.h>

#include "cli/options/command_line.hpp"
#include "cli/options/flags.hpp"
#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

using Args = std::vector<std::string>;

Settings parsed(const Args& args) {
  auto result = parse_command_line("haulout", args);
  if (const auto* immediate = std::get_if<Immediate>(&result)) {
    ADD_FAILURE() << immediate->err << immediate->out;
    return {};
  }
  return std::get<Settings>(result);
}

TEST(PeopleCommandsTest, WhatTheyTake) {
  const Settings status = parsed({"status", "-w", "-o", "wide", "node/n1", "n2"});
  EXPECT_EQ(status.command, Command::status);
  EXPECT_TRUE(status.people.watch);
  EXPECT_EQ(status.output, OutputFormat::wide);
  EXPECT_THAT(status.nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(parsed({"status"}).nodes, IsEmpty()) << "all of them";
  EXPECT_EQ(parsed({"explain", "n1", "-ojson"}).output, OutputFormat::json);
  EXPECT_TRUE(parsed({"pause", "--all"}).people.all);
  EXPECT_EQ(parsed({"pause", "--pool=web"}).people.pool, "web");
  EXPECT_EQ(parsed({"resume", "--pool=GPU_v1.2-a"}).people.pool, "GPU_v1.2-a") << "the value of a label";
  EXPECT_EQ(parsed({"resume", "-l", "a=b"}).selector, "a=b");
  EXPECT_EQ(parsed({"request-reboot", "n1", "--reason", "why"}).people.reason, "why");
  EXPECT_EQ(parsed({"pause", "n1", "--reason", "a\x1b[2Jb"}).people.reason, "a [2Jb");
  EXPECT_EQ(parsed({"__complete"}).command, Command::complete_nodes);
}

TEST(PeopleCommandsTest, TheNamespaceIsTheAgentsUnlessNamed) {
  EXPECT_EQ(parsed({"status"}).haulout_namespace(), "haulout");
  EXPECT_EQ(parsed({"status", "-n", "ops"}).haulout_namespace(), "ops");
  EXPECT_EQ(parsed({"-n", "ops", "pause", "--all"}).haulout_namespace(), "ops");
}

TEST(PeopleCommandsTest, UntilIsATimeOrAWhile) {
  const auto until = [](const std::string& text) { return parsed({"pause", "--all", "--until", text}).people.time; };
  EXPECT_EQ(std::get<Duration>(*until("90m")), Duration(90min));
  EXPECT_EQ(std::get<WallTime>(*until("2026-12-24T19:00:00+01:00")),
            WallTime(std::chrono::sys_days(std::chrono::year(2026) / 12 / 24)) + 18h);
  EXPECT_FALSE(parsed({"pause", "--all"}).people.time);
}

struct Wrong {
  Args args;
  const char* says;
};

TEST(PeopleCommandsTest, WhatIsWrongIsFoundBeforeAnyConnection) {
  const Wrong rows[] = {
      {{"status", "n1", "-l", "a=b"}, "both a node name and a --selector"},
      {{"status", "-o", "jsonl"}, "text, wide, json"},
      {{"status", "pod/x"}, "is not a node"},
      {{"explain"}, "takes one node"},
      {{"explain", "n1", "n2"}, "takes one node"},
      {{"explain", "n1", "-o", "wide"}, "text, json"},
      {{"pause"}, "--pool POOL or --all"},
      {{"pause", "n1", "--all"}, "exclude each other"},
      {{"pause", "--pool=web", "--all"}, "exclude each other"},
      {{"resume", "-l", "a=b", "--pool", "web"}, "exclude each other"},
      {{"resume", "--all", "--until", "2h"}, "unknown flag --until"},
      {{"pause", "--all", "--until", "tomorrow"}, "2026-12-24T18:00:00Z"},
      {{"pause", "--all", "--until", "0"}, "longer than 0"},
      {{"pause", "--all", "--until", "-5m"}, "longer than 0"},
      {{"pause", "--pool", "A b"}, "--pool"},
      {{"pause", "--pool="}, "--pool"},
      {{"pause", "--pool=.web"}, "--pool"},
      {{"pause", "--pool=web_"}, "--pool"},
      {{"pause", "--pool", std::string(64, 'a')}, "--pool"},
      {{"request-reboot"}, "no node is given"},
      {{"request-reboot", "--all"}, "unknown flag --all"},
      {{"completion"}, "bash, zsh, fish"},
      {{"completion", "tcsh"}, "bash, zsh, fish"},
      {{"stauts"}, "did you mean status?"},
      {{"__complet"}, "unknown command"},
  };
  for (const Wrong& row : rows) {
    auto result = parse_command_line("haulout", row.args);
    const auto* immediate = std::get_if<Immediate>(&result);
    ASSERT_NE(immediate, nullptr) << ::testing::PrintToString(row.args);
    EXPECT_EQ(immediate->exit_code, 2);
    EXPECT_THAT(immediate->err, HasSubstr(row.says));
  }
}

TEST(PeopleCommandsTest, HelpNamesEveryFlag) {
  for (const CommandRow& row : command_rows()) {
    EXPECT_THAT(help_text(std::nullopt, "haulout"), HasSubstr(std::string(row.name)));
    const std::string help = help_text(row.command, "kubectl haulout");
    EXPECT_THAT(help, HasSubstr(fmt::format("kubectl haulout {}", row.name)));
    for (const Flag& flag : command_flags(row.command)) EXPECT_THAT(help, HasSubstr("--" + flag.name)) << row.name;
  }
  EXPECT_EQ(help_text(std::nullopt, "haulout").find("__complete"), std::string::npos);
}

// A new user has none of the directories of completions.
TEST(PeopleCommandsTest, HelpMakesTheDirectoriesOfCompletions) {
  const std::string help = help_text(Command::completion, "haulout");
  EXPECT_THAT(help, HasSubstr("mkdir -p ~/.local/share/bash-completion/completions\n"));
  EXPECT_THAT(help, HasSubstr("mkdir -p ~/.config/fish/completions\n"));
}

TEST(PeopleCommandsTest, HelpFitsATerminalAndHasNoLinks) {
  for (const CommandRow& row : command_rows()) {
    std::istringstream help(help_text(row.command, "haulout"));
    for (std::string line; std::getline(help, line);) {
      // A flag and its default value are not wrapped, so their line may be longer.
      if (!line.starts_with("    -")) EXPECT_LE(line.size(), 120u) << row.name << ": " << line;
      EXPECT_EQ(line.find("]("), std::string::npos) << row.name << ": " << line;
    }
  }
}

// In all commands, flags with the same name are of the same kind, and so are flags with the same letter. The grammar of
// the command line relies on this.
TEST(PeopleCommandsTest, FlagsAgreeOverAllCommands) {
  std::map<std::string, Flag::Kind> kinds;
  std::map<char, std::set<Flag::Kind>> letters;
  for (const CommandRow& row : command_rows())
    for (const Flag& flag : all_flags(row.command)) {
      const auto known = kinds.emplace(flag.name, flag.kind).first;
      EXPECT_EQ(known->second, flag.kind) << row.name << " --" << flag.name;
      if (flag.letter != 0) letters[flag.letter].insert(flag.kind);
    }
  for (const auto& [letter, kinds_of] : letters) EXPECT_EQ(kinds_of.size(), 1u) << letter;
}

}  // namespace
}  // namespace haulout::cli
