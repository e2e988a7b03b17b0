// No reason without a row in the table: the reasons that stand in the sources, and those that functions give.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "agent/report/reasons.hpp"
#include "drain/eviction_verdict.hpp"

namespace haulout::agent {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A whole literal that is one word, with a capital and a small letter first: no constant of an API, no acronym.
std::string word_at(const std::string& text, std::size_t quote) {
  const std::size_t end = text.find('"', quote + 1);
  if (end == std::string::npos || end < quote + 4) return {};
  const std::string word = text.substr(quote + 1, end - quote - 1);
  const bool letters = std::all_of(word.begin(), word.end(), is_letter);
  return letters && word[0] <= 'Z' && word[1] >= 'a' ? word : std::string();
}

// Whether the statement up to a literal is one of those by which a reason is given in these sources.
bool gives_a_reason(const std::string& text, std::size_t quote) {
  const std::size_t before = text.find_last_of(";}", quote);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string statement = text.substr(begin, quote - begin);
  if (statement.find("action = ") != std::string::npos) return false;  // an Event that is only tried
  for (const char* way : {"reason = ", "show(", "warn(", "cause_ = ", "cause = ", "held_up_ = ", "Brake{",
                          "Brake brake{", "tell({", "park(", "hold(", "verdict_of(", "Verdict::"})
    if (statement.find(way) != std::string::npos) return true;
  return false;
}

std::map<std::string, std::string> reasons_in_sources() {
  std::map<std::string, std::string> found;
  for (const char* folder : {"/agent", "/drain"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(HAULOUT_SOURCE_DIR) + folder)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".cpp") && !path.ends_with(".hpp")) continue;
      const std::string text = read(path);
      for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
        const std::string word = word_at(text, at);
        if (!word.empty() && gives_a_reason(text, at)) found.emplace(word, path);
      }
    }
  }
  return found;
}

TEST(SourcesTest, EveryReasonInTheSourcesIsInTheTable) {
  const auto found = reasons_in_sources();
  for (const auto& [reason, path] : found)
    EXPECT_TRUE(find_reason(reason) != nullptr)
        << path << " gives the reason " << reason << ": agent/report/reason_table.cpp must say what it means";
  // The search itself works.
  for (const char* known : {"WaitingForSlot", "RolledBack", "RebootFailed", "OutsideWindow", "TooManyReboots",
                            "PodPinned", "PodStuckTerminating", "DoNotDisrupt", "EmptyDir", "ApiUnavailable",
                            "CannotExclude", "WaitingForLoadBalancers", "SlotsUnavailable"})
    EXPECT_TRUE(found.contains(known)) << known;
}

TEST(SourcesTest, EveryDiagnosisIsInTheTable) {
  const std::regex code("\\{\"([A-Z][a-z]+[A-Z][A-Za-z]+)\",");
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(HAULOUT_SOURCE_DIR "/drain")) {
    const std::string text = read(entry.path());
    for (auto each = std::sregex_iterator(text.begin(), text.end(), code); each != std::sregex_iterator(); ++each)
      found.insert((*each)[1].str());
  }
  for (const std::string& each : found) EXPECT_TRUE(find_reason(each) != nullptr) << each;
  EXPECT_GE(found.size(), 29u);
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
