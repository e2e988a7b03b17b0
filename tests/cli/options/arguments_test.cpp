#include "cli/options/arguments.hpp"

namespace haulout::cli {
namespace {

using Args = std::vector<std::string>;

struct Row {
  Args given;
  Args args;
  Args words;
};

TEST(ArgumentsTest, PflagSpellingsBecomeThoseOfCli11) {
  const std::vector<Row> rows = {
      {{}, {}, {}},
      {{"drain", "n1"}, {"drain", "n1"}, {}},
      {{"-l=a=b"}, {"-l", "a=b"}, {}},
      {{"-l="}, {"-l", ""}, {}},
      {{"-la=b"}, {"-la=b"}, {}},
      {{"-l", "a=b"}, {"-l", "a=b"}, {}},
      {{"--selector=a=b"}, {"--selector", "a=b"}, {}},
      {{"--pod-selector=", "n1"}, {"--pod-selector", "", "n1"}, {}},
      {{"--force", "n1"}, {"--force", "true", "n1"}, {}},
      {{"--force=false"}, {"--force", "false"}, {}},
      {{"--force="}, {"--force", ""}, {}},
      {{"--dry-run", "client"}, {"--dry-run", "", "client"}, {}},
      {{"--dry-run=client"}, {"--dry-run", "client"}, {}},
      {{"a", "--", "-l=x", "--", "b"}, {"a"}, {"-l=x", "--", "b"}},
      {{"--timeout", "--", "n1"}, {"--timeout", "--", "n1"}, {}},
      {{"--token", "-l=x"}, {"--token", "-l=x"}, {}},
      {{"--timeout"}, {"--timeout"}, {}},
      {{"--nonsense=1", "-x=1", "-", ""}, {"--nonsense=1", "-x=1", "-", ""}, {}},
  };
  std::vector<Flag> flags = command_flags(Command::drain);
  for (Flag& flag : connection_flags()) flags.push_back(std::move(flag));
  for (const Row& row : rows) {
    const Arguments result = normalise_arguments(flags, row.given);
    EXPECT_EQ(result.args, row.args) << ::testing::PrintToString(row.given);
    EXPECT_EQ(result.words, row.words) << ::testing::PrintToString(row.given);
  }
}

}  // namespace
}  // namespace haulout::cli
