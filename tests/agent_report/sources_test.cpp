// No reason without a row in the table: the reasons that stand in the sources, and those that functions give.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "agent/report/reasons.hpp"
#include "drain/eviction_verdict.hpp"

namespace haulout::agent {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A capital and a small letter: no constant of an API, no acronym.
const std::string word = "\"([A-Z][a-z][A-Za-z]*)\"";

// How a reason is given in these sources.
std::vector<std::regex> ways() {
  std::vector<std::regex> all;
  for (const std::string& before :
       {std::string("\\breason = (?:[^;\"]*\\? )?"), std::string("\\bshow\\(\\s*"), std::string("\\bcause_? = "),
        std::string("\\bBrake\\s*\\{\\s*"), std::string("\\btell\\(\\s*\\{[^\"}]*"),
        std::string("\\b(?:park|hold)\\([^\";]*"), std::string("(?:Verdict::\\w+|verdict_of\\([^)]*\\)),\\s*")})
    all.emplace_back(before + word);
  return all;
}

std::map<std::string, std::string> reasons_in_sources() {
  std::map<std::string, std::string> found;
  for (const char* folder : {"agent", "drain"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(HAULOUT_SOURCE_DIR "/") + folder)) {
      const std::string path = entry.path().string();
      const bool code = path.ends_with(".cpp") || path.ends_with(".hpp");
      // Reports about this machine's interfaces, not about the node.
      if (!code || path.find("/agent/dbus/") != std::string::npos) continue;
      const std::string text = read(path);
      for (const std::regex& way : ways())
        for (auto each = std::sregex_iterator(text.begin(), text.end(), way); each != std::sregex_iterator(); ++each)
          found.emplace((*each)[1].str(), path);
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
                            "PodPinned", "PodStuckTerminating", "DoNotDisrupt", "EmptyDir", "ApiUnavailable"})
    EXPECT_TRUE(found.contains(known)) << known;
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
