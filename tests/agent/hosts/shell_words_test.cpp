#include "agent/hosts/host_command.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {
using namespace std::string_literals;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Good {
  std::string text;
  Words words;
};
class ShellWords : public ::testing::TestWithParam<Good> {};

TEST_P(ShellWords, AreThoseOfAShell) {
  const auto words = shell_words(GetParam().text);
  ASSERT_TRUE(words) << words.error().message();
  EXPECT_EQ(*words, GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(Lines, ShellWords,
                         ::testing::Values(Good{"", {}}, Good{" \t\n ", {}}, Good{"/sbin/reboot", {"/sbin/reboot"}},
                                           Good{"  a  b\tc\n", {"a", "b", "c"}}, Good{R"('a b' "c d")", {"a b", "c d"}},
                                           Good{R"('' "")", {"", ""}}, Good{R"(a'b'"c"\d)", {"abcd"}},
                                           Good{R"(a\ b)", {"a b"}}, Good{R"("a\"b\\c\$d\`e\f")", {R"(a"b\c$d`e\f)"}},
                                           Good{R"('a\b"c')", {R"(a\b"c)"}}, Good{"a\\\nb", {"ab"}},
                                           Good{"\"a\\\nb\"", {"ab"}},
                                           Good{R"($HOME ~ * $(x) `y` a;b|c&d>e #f)",
                                                {"$HOME", "~", "*", "$(x)", "`y`", "a;b|c&d>e", "#f"}}));

TEST(ShellWordsErrors, NameWhatIsOpen) {
  for (const std::string& text : {"a 'b"s, "a \"b"s, "a \"b\\\""s, "a\\"s, "a\0b"s}) {
    const auto words = shell_words(text);
    ASSERT_FALSE(words) << text;
    EXPECT_EQ(words.error().code(), Errc::invalid);
    EXPECT_FALSE(words.error().message().empty());
  }
}

TEST(HostCommandParsing, TakesTheFirstWordAsProgram) {
  const auto words = shell_words("shutdown -r 'in one minute'");
  ASSERT_TRUE(words);
  EXPECT_EQ(host_command(*words), (HostCommand{"shutdown", {"-r", "in one minute"}}));
}

}  // namespace
}  // namespace haulout::agent
