// Tests that the help and docs/flags.md show the defaults that the settings have, for the flags of every command.
#include "cli/options/flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> shown(const std::vector<Flag>& flags, const Settings& settings) {
  std::vector<std::string> values;
  for (const Flag& flag : flags) values.push_back("--" + flag.name + "=" + flag.show(settings));
  return values;
}

TEST(FlagsTest, TheShownDefaultIsTheDefault) {
  for (const CommandRow& row : command_rows()) {
    if (row.command == Command::agent) continue;  // its defaults are those of AgentConfig, see option_table_test.cpp
    const std::vector<Flag> flags = all_flags(row.command);
    const Settings untouched = default_settings(row.command);
    const std::vector<std::string> defaults = shown(flags, untouched);
    for (const Flag& flag : flags) {
      const std::string value = flag.shown_default();
      if (value.empty()) continue;
      Settings settings = untouched;
      EXPECT_EQ(flag.apply(settings, value), "") << row.name << " --" << flag.name << "=" << value;
      EXPECT_EQ(shown(flags, settings), defaults) << row.name << " --" << flag.name << "=" << value;
      EXPECT_EQ(settings.drain, untouched.drain) << row.name << " --" << flag.name << "=" << value;
    }
  }
}

TEST(FlagsTest, DefaultsThatScriptsKnow) {
  const auto shown_by = [](Command command, const std::string& name) {
    for (const Flag& flag : all_flags(command))
      if (flag.name == name) return flag.shown_default();
    return std::string("no such flag");
  };
  EXPECT_EQ(shown_by(Command::drain, "max-concurrent"), "unlimited");
  EXPECT_EQ(shown_by(Command::agent, "max-concurrent"), "5");
  EXPECT_EQ(shown_by(Command::drain, "settle"), "5s");
  EXPECT_EQ(shown_by(Command::drain, "volume-limit"), "2m");
  EXPECT_EQ(shown_by(Command::drain, "wait-volumes"), "false");
  EXPECT_EQ(shown_by(Command::agent, "wait-volumes"), "true");
  EXPECT_EQ(shown_by(Command::retire, "wait-volumes"), "true");
  EXPECT_EQ(shown_by(Command::retire, "ignore-daemonsets"), "true");
  EXPECT_EQ(shown_by(Command::retire, "max-unavailable-per-controller"), "25%");
  EXPECT_EQ(shown_by(Command::drain, "grace-period"), "-1");
  EXPECT_EQ(shown_by(Command::drain, "skip-wait-for-delete-timeout"), "0");
  EXPECT_EQ(shown_by(Command::drain, "timeout"), "0s");
  EXPECT_EQ(shown_by(Command::drain, "dry-run"), "none");
  EXPECT_EQ(shown_by(Command::drain, "chunk-size"), "500");
  EXPECT_EQ(shown_by(Command::drain, "request-timeout"), "0");
  EXPECT_EQ(shown_by(Command::rehearse, "reboot-time"), "3m");
  EXPECT_EQ(shown_by(Command::rehearse, "attach-within"), "15s");
  EXPECT_EQ(shown_by(Command::rehearse, "detach-within"), "30s");
  EXPECT_EQ(shown_by(Command::rehearse, "ready-after"), "30s");
  EXPECT_EQ(shown_by(Command::rehearse, "terminate-within"), "");
  EXPECT_EQ(shown_by(Command::audit, "rehearse-at-most"), "100");
  EXPECT_EQ(shown_by(Command::audit, "fail-on"), "blocks");
  EXPECT_EQ(shown_by(Command::fleetlock_serve, "listen"), "127.0.0.1:8080");
  EXPECT_EQ(shown_by(Command::fleetlock_serve, "max-unavailable"), "1");
  EXPECT_EQ(shown_by(Command::fleetlock_serve, "pool"), "");
  EXPECT_EQ(shown_by(Command::agent, "backoff"), "5m");
  EXPECT_EQ(shown_by(Command::agent, "sentinel-exit-codes"), "0=yes,1=no");
  EXPECT_EQ(shown_by(Command::agent, "reboot-method"), "logind,systemd");
}

TEST(FlagsTest, ThePageIsTheOneInTheTree) {
  const std::string path = std::string(HAULOUT_DOCS_DIR "/") + "flags.md";
  if (std::getenv("HAULOUT_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::trunc) << flags_page();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text == flags_page())
      << "docs/flags.md is not what the tables of options say: run this test with HAULOUT_UPDATE_DOCS=1 in its "
         "environment, and it writes the page anew";
}

TEST(FlagsTest, TheHelpOnATerminalHasNoMarkdown) {
  for (const CommandRow& row : command_rows())
    for (const Flag& flag : all_flags(row.command)) {
      EXPECT_THAT(flag.help, Not(HasSubstr("]("))) << row.name << " --" << flag.name;
      EXPECT_THAT(flag.help, Not(HasSubstr("`"))) << row.name << " --" << flag.name;
    }
}

}  // namespace
}  // namespace haulout::cli
