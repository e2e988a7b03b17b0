// Tests the completion scripts. Each script names every command and flag. bash runs the script for bash.
#include "cli/options/completion.hpp"

#include <fmt/format.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/options/flags.hpp"
#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CompletionTest, EveryScriptKnowsEveryCommandAndFlag) {
  for (const std::string& shell : completion_shells()) {
    const std::string script = completion_script(shell);
    for (const CommandRow& row : command_rows()) {
      EXPECT_THAT(script, HasSubstr(std::string(row.name))) << shell;
      for (const Flag& flag : command_flags(row.command)) {
        const std::string spelt = shell == "fish" ? "-l " + flag.name : "--" + flag.name;
        EXPECT_THAT(script, HasSubstr(spelt)) << shell;
      }
    }
    EXPECT_THAT(script, HasSubstr("__complete")) << shell;
  }
}

class BashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "haulout-completion-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    std::ofstream(dir_ / "script") << completion_script("bash");
    // This script replaces the program. It records its arguments and prints three nodes.
    std::ofstream(dir_ / "haulout") << "#!/bin/sh\necho \"$@\" > " << (dir_ / "asked").string()
                                    << "\nprintf 'n1\\nn2\\nworker\\n'\n";
    std::filesystem::permissions(dir_ / "haulout", std::filesystem::perms::owner_all);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Returns what bash offers for these words. The user is typing the last word.
  std::vector<std::string> offered(const std::vector<std::string>& words) {
    std::string line = "source " + (dir_ / "script").string() + "; COMP_WORDS=(" + (dir_ / "haulout").string();
    for (const std::string& word : words) line += " '" + word + "'";
    line += fmt::format("); COMP_CWORD={}; _haulout; printf '%s\\n' \"${{COMPREPLY[@]}}\"", words.size());
    std::ofstream(dir_ / "run") << line;
    std::FILE* pipe = ::popen(("bash --norc " + (dir_ / "run").string()).c_str(), "r");
    if (pipe == nullptr) return {"bash cannot be run"};
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
      text.append(buffer.data(), count);
    EXPECT_EQ(::pclose(pipe), 0) << text;
    std::vector<std::string> result;
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);)
      if (!each.empty()) result.push_back(each);
    return result;
  }
  std::string asked() const {
    std::ifstream file(dir_ / "asked");
    std::string line;
    std::getline(file, line);
    return line;
  }

  std::filesystem::path dir_;
};

TEST_F(BashTest, Commands) {
  EXPECT_THAT(offered({"re"}), ElementsAre("retire", "resume", "request-reboot", "release", "rehearse"));
  EXPECT_THAT(offered({""}), Contains("drain"));
  EXPECT_THAT(offered({"--context", "prod", "dr"}), ElementsAre("drain")) << "a value is no command";
  EXPECT_THAT(offered({"help", "ex"}), ElementsAre("explain"));
  EXPECT_THAT(offered({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
}

TEST_F(BashTest, FlagsOfTheCommand) {
  EXPECT_THAT(offered({"drain", "--ig"}), ElementsAre("--ignore-daemonsets"));
  EXPECT_THAT(offered({"pause", "n1", "--un"}), ElementsAre("--until"));
  EXPECT_THAT(offered({"status", "-"}), Not(Contains("--until")));
  EXPECT_THAT(offered({"agent", "--max-un"}), ElementsAre("--max-unavailable", "--max-unavailable-per-controller"));
  EXPECT_THAT(offered({"--kubec"}), ElementsAre("--kubeconfig"));
}

TEST_F(BashTest, NodesAreAskedForWithTheConnectionThatWasTyped) {
  EXPECT_THAT(offered({"drain", "n"}), ElementsAre("n1", "n2"));
  EXPECT_EQ(asked(), "__complete");
  EXPECT_THAT(offered({"--context", "prod", "explain", ""}), ElementsAre("n1", "n2", "worker"));
  EXPECT_EQ(asked(), "--context prod __complete");
  EXPECT_THAT(offered({"drain", "--kubeconfig", "=", "/k", "w"}), ElementsAre("worker")) << "bash splits at \"=\"";
  EXPECT_EQ(asked(), "--kubeconfig /k __complete");
  EXPECT_THAT(offered({"version", ""}), IsEmpty());
  EXPECT_THAT(offered({"drain", "--timeout", ""}), IsEmpty()) << "a value of its own";
}

}  // namespace
}  // namespace haulout::cli
