#include "k8s/warnings.hpp"

namespace haulout::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> warned(const std::vector<std::string>& values) {
  http::Headers headers;
  headers.add("Content-Type", "application/json");
  for (const std::string& value : values) headers.add("warning", value);
  return warnings_of(headers);
}

TEST(Warnings, TextsOfCode299) {
  EXPECT_THAT(warned({R"(299 - "policy quiet-hours: not now")"}), ElementsAre("policy quiet-hours: not now"));
  EXPECT_THAT(warned({R"(299 - "one", 299 kube "two")", R"(299 - "three")"}), ElementsAre("one", "two", "three"));
  EXPECT_THAT(warned({R"(299 - "say \"please\", \\o/" "Mon, 23 Nov 2026 17:00:00 GMT")", R"(299 - "b")"}),
              ElementsAre(R"(say "please", \o/)", "b"));
  EXPECT_THAT(warned({R"(199 - "another code")", R"(299 - "")"}), IsEmpty());
}

TEST(Warnings, WhatIsNotWellFormedIsLeftOut) {
  for (const char* value :
       {"", "299", "299 -", "299 - unquoted", R"(299 - "open)", R"(299 - "open\)", "\"", ",,,", "299\t-\t"})
    EXPECT_THAT(warned({value}), IsEmpty()) << value;
  EXPECT_THAT(warned({R"(299 - "good", 299 - "open)"}), ElementsAre("good"));
}

TEST(Warnings, P12_AnAnswerHoldsOnlySoMuchOfThem) {
  const std::vector<std::string> many(100, "299 - \"" + std::string(1000, 'x') + "\"");
  EXPECT_EQ(warned(many).size(), 4u);
}

}  // namespace
}  // namespace haulout::k8s
