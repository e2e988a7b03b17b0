#include <filesystem>

#include "tests/agent/config/support.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LoadConfigTest : public ::testing::Test {
 protected:
  std::string pool(const FlagValues& flags, const Variables& environment = {}) {
    auto result = load_config(flags, environment, default_file_);
    if (auto* problems = std::get_if<std::string>(&result)) return "error: " + *problems;
    return std::get<AgentConfig>(result).pool;
  }

  haulout::testing::TempDir dir_;
  std::string default_file_ = dir_ / "config.yaml";
};

TEST_F(LoadConfigTest, TheDefaultFileNeedNotExist) {
  EXPECT_EQ(pool({}), "");
  dir_.write("config.yaml", "pool: from-default-file\n");
  EXPECT_EQ(pool({}), "from-default-file");
}

TEST_F(LoadConfigTest, ANamedFileStandsInForTheDefaultOne) {
  dir_.write("config.yaml", "pool: from-default-file\n");
  const std::string by_flag = dir_.write("flag.yaml", "pool: from-flag\n");
  const std::string by_variable = dir_.write("variable.yaml", "pool: from-variable\n");
  EXPECT_EQ(pool({{"config", by_flag}}), "from-flag");
  EXPECT_EQ(pool({}, {{"HAULOUT_CONFIG", by_variable}}), "from-variable");
  EXPECT_EQ(pool({{"config", by_flag}}, {{"HAULOUT_CONFIG", by_variable}}), "from-flag");
  EXPECT_EQ(pool({{"config", by_variable}, {"config", by_flag}}), "from-flag");
  EXPECT_EQ(pool({{"config", ""}}, {{"HAULOUT_CONFIG", by_variable}}), "from-default-file");
  EXPECT_EQ(pool({}, {{"HAULOUT_CONFIG", ""}}), "from-default-file");
}

TEST_F(LoadConfigTest, ANamedFileThatIsMissingIsAnError) {
  const std::string missing = dir_ / "missing.yaml";
  const auto says = AllOf(HasSubstr(missing), HasSubstr("cannot be read: No such file or directory"),
                          HasSubstr("correct its path (--config, HAULOUT_CONFIG)"));
  EXPECT_THAT(pool({{"config", missing}}), says);
  EXPECT_THAT(pool({}, {{"HAULOUT_CONFIG", missing}}), says);
}

TEST_F(LoadConfigTest, ADefaultFileThatCannotBeReadIsAnError) {
  std::filesystem::create_directory(default_file_);
  EXPECT_THAT(pool({}), AllOf(HasSubstr("cannot be read: Is a directory"), HasSubstr("delete it")));
}

TEST_F(LoadConfigTest, MistakesNameTheFile) {
  const std::string file = dir_.write("my.yaml", "pool: a\npool: b\n");
  EXPECT_THAT(pool({{"config", file}}), HasSubstr(file + ":2: duplicate key pool"));
}

TEST_F(LoadConfigTest, LongFilesAreReadWhole) {
  const std::string file = dir_.write("long.yaml", std::string(20'000, '#') + "\npool: at-the-end\n");
  EXPECT_EQ(pool({{"config", file}}), "at-the-end");
  EXPECT_THAT(pool({{"config", "/dev/zero"}}), HasSubstr("cannot be read: File too large"));
}

}  // namespace
}  // namespace haulout::agent
