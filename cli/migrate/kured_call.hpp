// How kured is called: the words of its command line, its variables and its mounts, and the options that these set.
// Flags have the grammar of pflag. Then each variable KURED_* replaces the value of its flag, or adds to it if the
// option is a list, as in kured since 1.16.2. Before, Kubernetes expands $(NAME) in the words. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/migrate/kured_options.hpp"

namespace haulout::cli {

struct KuredVariable {
  std::string name;
  std::optional<std::string> value;  // unset: it is not in what was read
  std::string source{};              // where a value that is unset is: "Secret kured, key url"
};

struct KuredMount {
  std::string path;  // in the container
  std::string host;  // directory or file of the host; empty: the volume is not of the host
};

// Something that was given and is no option of kured, or does not reach it.
struct KuredStray {
  std::string spelled;
  Outcome outcome = Outcome::unknown;
  std::string why;
  // It may have kept kured from reboots, or kured does not start with it. Then the configuration holds the fleet back.
  bool holds_back = false;
};

struct KuredCall {
  std::string from;                  // for messages: "DaemonSet kube-system/kured"
  std::vector<std::string> words{};  // the arguments after the program
  std::vector<KuredVariable> variables{};
  std::vector<std::string> variable_sets{};  // ConfigMaps and Secrets with variables that were not read: "Secret kured"
  std::vector<KuredMount> mounts{};
  std::vector<KuredStray> unused_values{};  // of the chart: values that do not reach kured, or that were not read
  std::vector<KuredStray> placement{};      // what keeps kured from nodes on which Haulout's agents would run
};

// An option that was given.
struct KuredGiven {
  std::vector<std::string> values;    // one, unless the option is a list
  std::vector<std::string> spelled;   // as it was given, for people; without secrets
  std::optional<std::string> source;  // set: the value is not in what was read, but here
  std::vector<std::string> passed;    // what kured parses: also values that a later one replaces
  std::vector<std::string> doubts;    // why kured may have read the values in another way
};

class KuredSettings {
 public:
  explicit KuredSettings(KuredCall call);

  // Returns nullptr if the option was not given.
  const KuredGiven* given(std::string_view option) const;
  // Returns the value that was given, or kured's default. Also if kured would refuse it. Empty if it is unknown.
  std::string value(std::string_view option) const;
  bool is_on(std::string_view option) const;
  const std::vector<KuredStray>& strays() const { return strays_; }
  const KuredCall& call() const { return call_; }
  // Returns the variable of the container; nullptr if there is none.
  const KuredVariable* variable(std::string_view name) const;

 private:
  void read_words();
  void read_variables();
  // Adds one value. `spelling` is the option as it was given, with its value unless that may be a secret.
  void add(const KuredOption& option, const std::optional<std::string>& value, std::string spelling,
           const std::string& source, bool by_variable);

  KuredCall call_;
  std::map<std::string, KuredGiven, std::less<>> given_;
  std::vector<KuredStray> strays_;
};

// A text after Kubernetes has replaced $(NAME) by the values of variables. If the value of one is not known, `source`
// says where it is.
struct Expanded {
  std::string text;
  std::string source{};
};
Expanded expanded(std::string_view text, const std::vector<KuredVariable>& variables);

// Splits the value of a list as pflag does: at commas, and a part in quotes may contain commas.
std::vector<std::string> split_list(std::string_view text);

}  // namespace haulout::cli
