// Counts in how many random worlds each feature of the generator occurred. The features of a world are the words
// without digits in its setting (SeededRun::setting). Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace haulout::testing {

class Dimensions {
 public:
  void add(const std::string& setting) {
    ++worlds_;
    std::set<std::string> met;
    std::istringstream words(setting);
    for (std::string word; words >> word;) {
      while (word.ends_with(',')) word.pop_back();
      const bool digit = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
      // A word with a colon counts even with digits, as in migrates:denies-429.
      if ((!digit || word.find(':') != std::string::npos) && word.size() > 2) met.insert(word);
    }
    for (const std::string& word : met) ++worlds_with_[word];
  }

  // Example: "; faults in 60, leave in 9". Omits words that every world has.
  std::string text() const {
    std::string text;
    for (const auto& [word, worlds] : worlds_with_)
      if (worlds < worlds_) text += fmt::format("{} {} in {}", text.empty() ? ";" : ",", word, worlds);
    return text;
  }

 private:
  std::size_t worlds_ = 0;
  std::map<std::string, std::size_t> worlds_with_;
};

}  // namespace haulout::testing
