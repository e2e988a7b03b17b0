// Tests the pages of the manual that are generated from tables, and the alert rules that use the metrics.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "agent/report/metrics.hpp"
#include "agent/report/reasons.hpp"
#include "agent/report/status_words.hpp"

namespace haulout::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string root = HAULOUT_SOURCE_DIR;

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_in_tree(const std::string& name, const std::string& page) {
  const std::string path = root + "/docs/" + name;
  if (std::getenv("HAULOUT_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::trunc) << page;
  EXPECT_TRUE(read(path) == page) << path
                                  << " is not what its table says: run this test with HAULOUT_UPDATE_DOCS=1 in its "
                                     "environment, and it writes the page anew";
}

TEST(PagesTest, ReasonsAreTheOnesInTheTree) {
  expect_in_tree("reasons.md", reasons_page());
}

TEST(PagesTest, MetricsAreTheOnesInTheTree) {
  expect_in_tree("metrics.md", metrics_page());
}

TEST(PagesTest, EveryReasonSaysWhatItMeansAndWhatToDo) {
  std::set<std::string_view> names;
  const std::regex camel_case("[A-Z][A-Za-z]+|[A-Z]+_[A-Z_]+");
  for (const Reason& reason : reasons()) {
    EXPECT_TRUE(names.insert(reason.name).second) << reason.name << " stands there twice";
    EXPECT_TRUE(std::regex_match(std::string(reason.name), camel_case)) << reason.name;
    EXPECT_LE(reason.name.size(), 63u) << "longer than the value of a label may be";
    EXPECT_TRUE(reason.meaning.ends_with(".")) << reason.name;
    EXPECT_TRUE(reason.remedy.ends_with(".")) << reason.name;
  }
}

TEST(PagesTest, TheReasonsOfEventsAboutStatesWithoutAReasonAreNamed) {
  for (const State state : all_states)
    EXPECT_THAT(reasons_page(), HasSubstr("`" + reason_of({state, "", "", {}}) + "`")) << to_string(state);
}

TEST(PagesTest, MetricsAreNamedAsPrometheusWantsIt) {
  for (const MetricRow& row : metric_table()) {
    EXPECT_TRUE(std::regex_match(std::string(row.name), std::regex("(haulout|process)_[a-z_]+"))) << row.name;
    EXPECT_EQ(row.name.ends_with("_total"), row.type == MetricType::counter) << row.name;
    EXPECT_TRUE(row.help.ends_with(".")) << row.name;
  }
}

TEST(PagesTest, TheAlertsSpeakOfMetricsAndStatesThatThereAre) {
  std::string rules = read(root + "/packaging/prometheus/haulout.rules.yaml");
  // Series that the rules record themselves. Their names have the form level:metric:operation.
  const std::regex recorded("[a-z]+:haulout_[a-z_]+:[a-z]+");
  std::smatch name_of_record;
  while (std::regex_search(rules, name_of_record, recorded)) {
    const std::string name = name_of_record.str();
    EXPECT_THAT(rules, HasSubstr("record: " + name));
    for (std::size_t at = 0; (at = rules.find(name)) != std::string::npos;) rules.erase(at, name.size());
  }
  std::set<std::string> known, spoken_of;
  for (const MetricRow& row : metric_table()) known.insert(std::string(row.name));
  const std::regex metric("haulout_[a-z_]+");
  for (auto found = std::sregex_iterator(rules.begin(), rules.end(), metric); found != std::sregex_iterator(); ++found)
    spoken_of.insert(found->str());
  ASSERT_FALSE(spoken_of.empty());
  for (const std::string& name : spoken_of) EXPECT_THAT(known, Contains(name));
  const std::regex states("state=~?\"([a-z|]+)\"");
  for (auto found = std::sregex_iterator(rules.begin(), rules.end(), states); found != std::sregex_iterator();
       ++found) {
    const std::string names = (*found)[1].str();
    const std::regex word("[a-z]+");
    for (auto each = std::sregex_iterator(names.begin(), names.end(), word); each != std::sregex_iterator(); ++each)
      EXPECT_TRUE(state_of(each->str())) << each->str();
  }
  const std::regex named("(reason|concern)=~?\"([A-Za-z|]+)\"");
  for (auto found = std::sregex_iterator(rules.begin(), rules.end(), named); found != std::sregex_iterator(); ++found) {
    std::istringstream names((*found)[2].str());
    for (std::string name; std::getline(names, name, '|');)
      EXPECT_TRUE((*found)[1] == "reason" ? find_reason(name) != nullptr : name == to_string(Concern::trouble)) << name;
  }
  EXPECT_THAT(rules, HasSubstr("alert: HauloutDegraded"));
  EXPECT_THAT(rules, HasSubstr("alert: HauloutStuck"));
}

}  // namespace
}  // namespace haulout::agent
