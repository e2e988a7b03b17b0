#include "base/option.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace haulout {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

struct Inner {
  Duration limit = 5s;
};
struct Outer {
  Inner inner;
  std::uint32_t count = 0;
};

TEST(OptionTest, DurationsAreWrittenAsTheyAreRead) {
  const std::vector<std::pair<Duration, std::string>> rows = {
      {0s, "0s"},      {5s, "5s"},     {60s, "1m"},
      {90s, "1m30s"},  {3h, "3h"},     {61min, "1h1m"},
      {3601s, "1h1s"}, {-2min, "-2m"}, {1500ms, "1s500000000ns"},
  };
  for (const auto& [duration, text] : rows) {
    EXPECT_EQ(written_duration(duration), text);
    EXPECT_EQ(parse_duration(text).value(), duration) << text;
  }
}

TEST(OptionTest, ALiftedOptionSetsTheMemberOfTheOuterStruct) {
  const OptionOf<Outer> option =
      lifted(OptionOf<Inner>{"limit", duration<Inner>(&Inner::limit, Zero::refused), "How long it may take.", 'l'},
             &Outer::inner);
  Outer outer;
  EXPECT_EQ(option.name, "limit");
  EXPECT_EQ(option.letter, 'l');
  EXPECT_EQ(option.values.show(outer), "5s");
  EXPECT_EQ(option.values.set(outer, "2m"), "");
  EXPECT_EQ(outer.inner.limit, 2min);
  EXPECT_EQ(option.values.set(outer, "0s"), "it must be longer than 0");
  EXPECT_EQ(option.values.show(outer), "2m") << "a value that is refused changes nothing";
}

TEST(OptionTest, AWordMayStandForNoLimit) {
  const Values<Outer> values = number_or_word<Outer>(&Outer::count, "pods", "unlimited", 100);
  Outer outer;
  EXPECT_EQ(values.show(outer), "unlimited");
  EXPECT_EQ(values.set(outer, "7"), "");
  EXPECT_EQ(outer.count, 7u);
  EXPECT_EQ(values.show(outer), "7");
  EXPECT_EQ(values.set(outer, "0"), "it must be from 1 to 100, or unlimited");
  EXPECT_EQ(values.set(outer, "unlimited"), "");
  EXPECT_EQ(outer.count, 0u);
}

TEST(OptionTest, NumbersOfKubectlDoNotNameTheirRangeToAWord) {
  std::int64_t value = 4;
  EXPECT_EQ(read_integer("1.5", -9, 9, value), "it is not a whole number");
  EXPECT_EQ(read_integer("10", -9, 9, value), "it must be from -9 to 9");
  EXPECT_EQ(read_number("1.5", 0, 9, value), "it must be a whole number from 0 to 9");
  EXPECT_EQ(value, 4);
  EXPECT_EQ(read_integer("-9", -9, 9, value), "");
  EXPECT_EQ(value, -9);
}

TEST(OptionTest, ATerminalShowsNoMarkdown) {
  EXPECT_EQ(plain_meaning("Needs `--a`: see [guards](guards.md), and [tasks](tasks.md)."),
            "Needs --a: see docs/guards.md, and docs/tasks.md.");
  EXPECT_EQ(plain_meaning("[]( ](x"), "[]( ](x");
}

TEST(OptionTest, SplittingRemovesBlanksAroundTheParts) {
  EXPECT_THAT(split_at(" a ;b; ", ';'), ElementsAre("a", "b", ""));
}

}  // namespace
}  // namespace haulout
