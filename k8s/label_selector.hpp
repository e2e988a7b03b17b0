// Label selectors: the object form (LabelSelector) and the text form of -l and --pod-selector. Pure. Parsing fails with
// Errc::invalid; the message names the part that is wrong.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::k8s {

// Returns true for the name part of a label's key, and for a value of a label that is not empty: at most 63 letters,
// digits, "-", "_" and ".", with a letter or a digit at both ends.
bool is_label_name(std::string_view name);

class LabelSelector {
 public:
  enum class Operator { in, not_in, exists, does_not_exist, greater_than, less_than };
  struct Requirement {
    std::string key;
    Operator op = Operator::exists;
    std::vector<std::string> values;
    bool operator==(const Requirement&) const = default;
  };

  LabelSelector() = default;
  explicit LabelSelector(std::vector<Requirement> requirements) : requirements_(std::move(requirements)) {}

  // Returns true if every requirement holds. A selector without requirements matches everything. As in the API, notin
  // and != also match if the label is absent.
  bool matches(const std::map<std::string, std::string>& labels) const;
  // Like matches(labels), with a function that returns the value of a label, or null if the label is absent.
  using ValueOf = std::function<const std::string*(const std::string& key)>;
  bool matches(const ValueOf& value_of) const;
  bool empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  bool operator==(const LabelSelector&) const = default;

 private:
  std::vector<Requirement> requirements_;
};

// Parses kubectl's grammar: "app=web,tier!=db,env in (a,b),!legacy,cores>4".
Result<LabelSelector> parse_label_selector(std::string_view text);
// Writes the selector in the same grammar.
std::string to_string(const LabelSelector& selector);

}  // namespace haulout::k8s
