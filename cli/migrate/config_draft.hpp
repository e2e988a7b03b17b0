// A configuration of Haulout's agents that a migration writes line by line. Each value is checked when it is added, as
// the agent checks it, so the agent accepts the result. Pure, except that windows read zoneinfo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/config/agent_config.hpp"

namespace haulout::cli {

struct ConfigLine {
  std::string option;
  std::vector<std::string> values;  // one, or the entries of a list
  std::vector<std::string> origin;  // the options of the other program from which the line comes, as they were given
  std::string note;                 // a comment; may be empty
  bool active = true;               // false: the line is only a proposal, as a comment
};

class ConfigDraft {
 public:
  // Adds a line. Returns what the agent would say against the value, and adds nothing then; an empty string on success.
  // If the draft has the option already with these values, only adds to its origin.
  std::string set(std::string_view option, const std::vector<std::string>& values,
                  const std::vector<std::string>& origin, std::string_view note = "");
  // Adds a line that is a comment. The value is not checked.
  void propose(std::string_view option, const std::vector<std::string>& values, const std::vector<std::string>& origin,
               std::string_view note);
  // Replaces the line of an option by this value, and keeps the former line as a proposal.
  void hold(std::string_view option, const std::string& value, std::string_view note);

  bool has(std::string_view option) const;
  // Returns the lines in the order of the table of options.
  std::vector<ConfigLine> lines() const;
  const agent::AgentConfig& config() const { return config_; }

 private:
  std::vector<ConfigLine> lines_;
  agent::AgentConfig config_;
};

// Returns the lines as YAML, each with a comment that has its origin and its note.
std::string yaml_of(const std::vector<ConfigLine>& lines);
// Returns the text as lines of comments.
std::string comment_of(std::string_view text);

}  // namespace haulout::cli
