// Tests that each reason has one name (drain/reasons.hpp) and one row in the table, and that no source gives a reason
// as a literal.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "agent/report/reasons.hpp"
#include "drain/eviction_verdict.hpp"

namespace haulout::agent {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Comments may quote a reason.
std::string without_comments(const std::string& text) {
  static const std::regex comment("(^|\\s)//[^\n]*");
  return std::regex_replace(text, comment, "$1");
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the string literal at `quote` if it is one word that begins with a capital and a small letter. Otherwise
// returns an empty string. So API constants in capitals and acronyms do not match.
std::string word_at(const std::string& text, std::size_t quote) {
  const std::size_t end = text.find('"', quote + 1);
  if (end == std::string::npos || end < quote + 4) return {};
  const std::string word = text.substr(quote + 1, end - quote - 1);
  const bool letters = std::all_of(word.begin(), word.end(), is_letter);
  return letters && word[0] <= 'Z' && word[1] >= 'a' ? word : std::string();
}

// Returns true if the statement up to a literal is one of those that give a reason in these sources.
bool gives_a_reason(const std::string& text, std::size_t quote) {
  const std::size_t before = text.find_last_of(";}", quote);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string statement = text.substr(begin, quote - begin);
  if (statement.find("action = ") != std::string::npos) return false;  // an Event that only tests a right
  for (const char* way : {"reason = ", "show(", "warn(", "cause_ = ", "cause = ", "held_up_ = ", "Brake{",
                          "Brake brake{", "tell({", "park(", "hold(", "verdict_of(", "Verdict::"})
    if (statement.find(way) != std::string::npos) return true;
  return false;
}

// The reasons that a source gives as literals.
std::vector<std::string> literal_reasons(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
    const std::string word = word_at(text, at);
    if (!word.empty() && (gives_a_reason(text, at) || find_reason(word) != nullptr)) found.push_back(word);
  }
  return found;
}

TEST(SourcesTest, NoSourceGivesAReasonAsALiteral) {
  std::size_t files = 0;
  for (const char* folder : {"/agent", "/drain", "/cli", "/rehearse", "/audit"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(HAULOUT_SOURCE_DIR) + folder)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".cpp") && !path.ends_with(".hpp")) continue;
      if (path.ends_with("/drain/reasons.hpp")) continue;
      // In drain/session.cpp, "Forbidden" is the reason of the API server's Status, not one of Haulout's.
      if (path.ends_with("/drain/session.cpp")) continue;
      // "DrainCompleted" is the reason of the condition Drained, and no reason why a node waits.
      if (path.ends_with("/agent/node/lifecycle_conditions.hpp")) continue;
      ++files;
      EXPECT_THAT(literal_reasons(without_comments(read(path))), ::testing::IsEmpty())
          << path << ": use drain/reasons.hpp";
    }
  }
  // The search has found the sources. Today they are some 280 files.
  EXPECT_GT(files, 200u);
  // Checks that the search itself works.
  EXPECT_THAT(literal_reasons(R"(held_up_ = {"SomethingNew", "why"};)"), ::testing::ElementsAre("SomethingNew"));
  EXPECT_THAT(literal_reasons(R"(f("RolledBack");)"), ::testing::ElementsAre("RolledBack"));
  EXPECT_THAT(literal_reasons(R"(f("Anything");)"), ::testing::IsEmpty());
}

std::string snake_case(const std::string& camel) {
  std::string result;
  for (const char c : camel) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && !result.empty()) result += '_';
    result += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

TEST(SourcesTest, EachNameHasOneRowAndEachRowAName) {
  const std::regex name("const char\\* (\\w+) = \"(\\w+)\"");
  const std::string text = read(HAULOUT_SOURCE_DIR "/drain/reasons.hpp");
  std::vector<std::string> named, rows;
  for (auto each = std::sregex_iterator(text.begin(), text.end(), name); each != std::sregex_iterator(); ++each) {
    EXPECT_EQ((*each)[1], snake_case((*each)[2]));
    named.push_back((*each)[2].str());
  }
  for (const Reason& reason : reasons()) rows.emplace_back(reason.name);
  EXPECT_THAT(rows, ::testing::UnorderedElementsAreArray(named));
}

TEST(SourcesTest, EveryVerdictOfAnEvictionIsInTheTable) {
  using enum drain::EvictionVerdict;
  for (const auto verdict : {budget, overlap, admission, ns_terminating, throttle, retry, replaced, forbidden, fatal})
    EXPECT_TRUE(find_reason(drain::park_reason(verdict)) != nullptr) << drain::park_reason(verdict);
}

TEST(SourcesTest, AReasonThatNobodyKnowsIsTrouble) {
  EXPECT_EQ(concern_of("SomethingNew"), Concern::trouble);
  EXPECT_EQ(concern_of("Evicting"), Concern::progress);
}

}  // namespace
}  // namespace haulout::agent
