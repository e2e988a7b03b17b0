#include "base/plain_text.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {
using namespace std::string_literals;

struct Line {
  std::string text;
  std::size_t limit;
  std::string expected;
};

class OneLine : public ::testing::TestWithParam<Line> {};

TEST_P(OneLine, IsPrintableUtf8OfThatLength) {
  const Line& line = GetParam();
  EXPECT_EQ(one_line(line.text, line.limit), line.expected);
}

INSTANTIATE_TEST_SUITE_P(Texts, OneLine,
                         ::testing::Values(Line{"", 20, ""}, Line{"  a \t\r\n b  ", 20, "a b"},
                                           Line{"a\0b"s, 20, "a b"}, Line{"\x1b[1mred\x7f", 20, "[1mred"},
                                           Line{"a\xc2\x9b"
                                                "b",
                                                20, "a b"},  // C1 control
                                           Line{"kürzer", 20, "kürzer"},
                                           Line{"a\xff"
                                                "b",
                                                20, "a?b"},
                                           Line{"cut \xe2\x80", 20, "cut ??"},  // ends inside a character
                                           Line{"\xc0\xaf", 20, "??"},
                                           Line{"\xed\xa0\x80", 20, "???"},  // a surrogate; the row above is overlong
                                           Line{"\xf4\x90\x80\x80", 20, "????"},
                                           Line{"\xf0\x9f\x9a\xa2", 20, "\xf0\x9f\x9a\xa2"},
                                           Line{"exactly10!", 10, "exactly10!"}, Line{"eleven byte", 10, "eleven …"},
                                           Line{"äöüäöü", 10, "äöü…"},  // 12 bytes, cut between characters
                                           Line{"abcdef", 2, ""}));

TEST(TakeLine, TakesOneLineAwayAsItIs) {
  std::string_view text = " a\n\nb";
  EXPECT_EQ(take_line(text), " a");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "b");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_line(text), "");
}

TEST(FirstLine, PassesOverBlankLines) {
  EXPECT_EQ(first_line("\n  \n\t*** System restart required ***\nmore\n"), "*** System restart required ***");
  EXPECT_EQ(first_line("no newline"), "no newline");
  EXPECT_EQ(first_line("\n \n"), "");
  EXPECT_EQ(first_line("\0\n\0x"s), "x");
}

}  // namespace
}  // namespace haulout::agent
