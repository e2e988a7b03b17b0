#include "base/text.hpp"

namespace haulout::agent {
namespace {

TEST(SuggestTest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("drain", "drain"), 0u);
  EXPECT_EQ(edit_distance("drian", "drain"), 2u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(SuggestTest, NearestWord) {
  const std::vector<std::string> words = {"drain", "cordon", "uncordon", "version"};
  EXPECT_EQ(nearest("drian", words), "drain");
  EXPECT_EQ(nearest("uncordn", words), "uncordon");
  EXPECT_EQ(nearest("corden", words), "cordon");
  EXPECT_EQ(nearest("apply", words), std::nullopt);
  EXPECT_EQ(nearest("x", {"ab"}), std::nullopt) << "nothing of it is left";
}

TEST(TextTest, ACellOfATableEscapesItsBorders) {
  EXPECT_EQ(markdown_cell(""), "");
  EXPECT_EQ(markdown_cell("off|after-drain"), "off\\|after-drain");
  EXPECT_EQ(markdown_cell("|a|"), "\\|a\\|");
}

TEST(ParseNumberTest, TheWholeTextMustBeTheNumber) {
  EXPECT_EQ(parse_number<std::int64_t>("-42"), -42);
  EXPECT_EQ(parse_number<std::uint16_t>("0"), 0);
  EXPECT_EQ(parse_number<std::uint16_t>("007"), 7);
  for (const char* text : {"", "-", "4 ", " 4", "\t4", "4\n", "4x", "x4", "4.0", "+4", "0x4", "1e3", "1,000"})
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  EXPECT_EQ(parse_number<std::int64_t>(std::string_view("4\0", 2)), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>({}), std::nullopt);
}

TEST(ParseNumberTest, AnUnsignedNumberHasNoSign) {
  for (const char* text : {"-1", "-0", "+1"}) EXPECT_EQ(parse_number<std::uint32_t>(text), std::nullopt) << text;
}

TEST(ParseNumberTest, TheTypeLimitsTheValue) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

TEST(ParseNumberTest, OtherBasesAndFractions) {
  EXPECT_EQ(parse_number<unsigned>("fF", 16), 255u);
  EXPECT_EQ(parse_number<unsigned>("g0", 16), std::nullopt);
  EXPECT_EQ(parse_number<unsigned>("0x", 16), std::nullopt);
  EXPECT_EQ(parse_number<unsigned>("102", 2), std::nullopt);
  EXPECT_EQ(parse_number<double>("-1.5e3"), -1500.0);
  for (const char* text : {"", ".", "1.5x", " 1.5", "+1.5", "0x1p3"})
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
}

}  // namespace
}  // namespace haulout::agent
