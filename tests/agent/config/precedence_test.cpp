// Tests for each type of value that a flag overrides the variable, the variable the file, and the file the default.
#include <fmt/format.h>

#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

struct Row {
  std::string name;
  // The value as a flag, as a variable and as a line of the file. Each differs from the default and from the others,
  // unless the type has too few values.
  std::string flag, variable, file;
  std::function<std::string(const AgentConfig&)> shows;
  std::string by_flag, by_variable, by_file, by_default;
};

std::string in_seconds(Duration duration) {
  return fmt::format("{}s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

std::string joined_with(const Strings& strings) {
  return fmt::format("[{}]", fmt::join(strings, "|"));
}

const std::vector<Row>& rows() {
  using C = AgentConfig;
  static const std::vector<Row> table = {
      {"pool", "a", "b", "c", [](const C& c) { return c.pool; }, "a", "b", "c", ""},
      {"unmanaged", "skip", "refuse", "skip",
       [](const C& c) { return std::to_string(static_cast<int>(c.drain.policy.unmanaged)); }, "1", "2", "1", "0"},
      {"ignore-do-not-disrupt", "true", "false", "true",
       [](const C& c) { return c.drain.policy.do_not_disrupt == drain::Treatment::evict ? "yes" : "no"; }, "yes", "no",
       "yes", "no"},
      {"ignore-do-not-disrupt", "false", "true", "false",
       [](const C& c) { return c.drain.policy.do_not_disrupt == drain::Treatment::evict ? "yes" : "no"; }, "no", "yes",
       "no", "no"},
      {"max-concurrent", "7", "8", "9", [](const C& c) { return std::to_string(c.drain.max_concurrent); }, "7", "8",
       "9", "5"},
      {"max-unavailable", "2", "10%", "20%", [](const C& c) { return c.max_unavailable; }, "2", "10%", "20%", "1"},
      {"soak", "1s", "1m", "1h", [](const C& c) { return in_seconds(c.soak); }, "1s", "60s", "3600s", "0s"},
      {"blocking-pod-selector", "f", "v1; v2", "[f1, f2]",
       [](const C& c) { return joined_with(c.blocking_pod_selectors); }, "[f]", "[v1|v2]", "[f1|f2]", "[]"},
      {"sentinel-command", "/f 1", "/v 'a b'", "[/y, c d]", [](const C& c) { return joined_with(c.sentinel_command); },
       "[/f|1]", "[/v|a b]", "[/y|c d]", "[]"},
      {"reboot-method", "systemd", "none", "[systemd, logind]",
       [](const C& c) {
         std::string text;
         for (const RebootMethod method : c.reboot_methods) text += std::to_string(static_cast<int>(method));
         return text;
       },
       "1", "4", "10", "01"},
  };
  return table;
}

TEST(PrecedenceTest, FlagsThenVariablesThenFileThenDefault) {
  for (const Row& row : rows()) {
    const FlagValues flag = {{row.name, row.flag}};
    const Variables variable = {{find_option(row.name)->variable(), row.variable}};
    const auto file = a_file(row.name + ": " + row.file + "\n");
    EXPECT_EQ(row.shows(config_of({}, {}, {})), row.by_default) << row.name;
    EXPECT_EQ(row.shows(config_of({}, {}, file)), row.by_file) << row.name;
    EXPECT_EQ(row.shows(config_of({}, variable, file)), row.by_variable) << row.name;
    EXPECT_EQ(row.shows(config_of({}, variable, {})), row.by_variable) << row.name;
    EXPECT_EQ(row.shows(config_of(flag, variable, file)), row.by_flag) << row.name;
    EXPECT_EQ(row.shows(config_of(flag, {}, file)), row.by_flag) << row.name;
    EXPECT_EQ(row.shows(config_of(flag)), row.by_flag) << row.name;
  }
}

TEST(PrecedenceTest, EveryTypeHasARow) {
  std::set<ValueType> covered;
  for (const Row& row : rows()) covered.insert(find_option(row.name)->values.type);
  for (const Option* option : options()) EXPECT_TRUE(covered.contains(option->values.type)) << option->name;
}

TEST(PrecedenceTest, NoSourcesMeanTheDefaults) {
  EXPECT_EQ(config_of({}), AgentConfig());
  EXPECT_EQ(config_of_file(""), AgentConfig());
}

TEST(PrecedenceTest, OfARepeatedFlagTheLastStandsAndListsGrow) {
  const std::string selector = "blocking-pod-selector";
  EXPECT_EQ(config_of({{"pool", "a"}, {"pool", "b"}}).pool, "b");
  EXPECT_EQ(config_of({{"pool", "a"}, {"pool", ""}}).pool, "");
  EXPECT_EQ(config_of({{selector, "a"}, {"soak", "1s"}, {selector, "b"}}).blocking_pod_selectors, (Strings{"a", "b"}));
  EXPECT_EQ(config_of({{selector, "a"}, {selector, ""}, {selector, "b"}}).blocking_pod_selectors, (Strings{"b"}));
}

TEST(PrecedenceTest, ASourceIsMixedWithOthersOptionByOption) {
  const AgentConfig config = config_of({{"settle", "1s"}}, {{"HAULOUT_POOL", "v"}, {"HAULOUT_SETTLE", "2s"}},
                                       a_file("pool: from-file\nsettle: 3s\nsoak: 4s\n"));
  EXPECT_EQ(config.drain.settle, Duration(1s));
  EXPECT_EQ(config.pool, "v");
  EXPECT_EQ(config.soak, Duration(4s));
}

struct EmptyRow {
  std::string name;
  std::string file;  // value in the configuration file
  bool resets;
};

TEST(PrecedenceTest, AnEmptyValueResetsTextsListsAndCommandsOnly) {
  const std::vector<EmptyRow> table = {
      {"pool", "workers", true},        {"namespace", "ops", true},           {"node-name", "n1", true},
      {"hooks-dir", "/h", true},        {"blackout", "[00:00, 12:00]", true}, {"blocking-pod-selector", "a=b", true},
      {"sentinel-command", "/s", true}, {"unmanaged", "skip", false},         {"soak", "5s", false},
      {"max-concurrent", "9", false},   {"reboot-method", "none", false},     {"ignore-do-not-disrupt", "true", false},
  };
  for (const EmptyRow& row : table) {
    const std::string variable = find_option(row.name)->variable();
    const auto file = a_file(row.name + ": " + row.file + "\n");
    EXPECT_NE(config_of({}, {}, file), AgentConfig()) << row.name;
    for (const bool as_flag : {true, false}) {
      const FlagValues flags = as_flag ? FlagValues{{row.name, ""}} : FlagValues{};
      const Variables variables = as_flag ? Variables{} : Variables{{variable, ""}};
      if (row.resets)
        EXPECT_EQ(config_of(flags, variables, file), AgentConfig()) << row.name;
      else
        EXPECT_THAT(problems_of(flags, variables, file),
                    ::testing::HasSubstr("invalid value \"\" for " + (as_flag ? "--" + row.name : variable)));
    }
  }
}

TEST(PrecedenceTest, ABadValueIsAnErrorEvenWhereAnotherSourceOverridesIt) {
  const auto file = a_file("soak: soon\n");
  EXPECT_THAT(problems_of({{"soak", "1s"}}, {}, file), ::testing::HasSubstr("config.yaml:1"));
  EXPECT_THAT(problems_of({{"soak", "1s"}}, {{"HAULOUT_SOAK", "soon"}}), ::testing::HasSubstr("HAULOUT_SOAK"));
  EXPECT_THAT(problems_of({{"soak", "soon"}, {"soak", "1s"}}), ::testing::HasSubstr("--soak"));
}

}  // namespace
}  // namespace haulout::agent
