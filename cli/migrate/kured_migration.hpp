// Translates a call of kured to the configuration of Haulout's agents, with a row for each option that was given, so
// that nothing is left out silently. Pure, except that windows read zoneinfo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/migrate/kured_call.hpp"

namespace haulout::cli {

struct MigratedOption {
  std::string name;                  // without --; empty for something that is no option of kured
  std::vector<std::string> spelled;  // as it was given, without secrets; empty: kured's default
  Outcome outcome = Outcome::translated;
  std::string why;
};

struct Migration {
  std::string from;      // what was read
  std::string config{};  // the configuration as YAML, which the agent accepts
  std::vector<MigratedOption> options{};
  // True: the configuration lets the agents update no node, because kured was kept from reboots by something that a
  // person must decide about, or may have been: it is unknown, or kured does not start with it.
  bool held_back = false;

  std::size_t count(Outcome outcome) const;
  // Returns true if every option has a counterpart or needs none.
  bool is_complete() const;
};

// Fails with Errc::invalid if the agent would refuse the configuration.
Result<Migration> migrate_kured(KuredCall call);

// Returns the outcome as the table names it: "no counterpart".
std::string_view words_of(Outcome outcome);
// Returns the lines for people: the table of options, a summary and what comes next.
std::vector<std::string> migration_lines(const Migration& migration);
// Returns the migration as one JSON document.
std::string migration_json(const Migration& migration);

}  // namespace haulout::cli
