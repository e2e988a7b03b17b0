// Formats the comparison of rehearsals of a fleet (`haulout rehearse --all --compare`, `--plan`) as text for people and
// as JSON for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "rehearse/comparison.hpp"

namespace haulout::cli {

struct ComparedSetting {
  std::string value;
  rehearse::FleetFigures figures;
  int exit_code = 0;  // of a rehearsal with this setting alone
};

struct Comparison {
  std::string option;                        // the option of the agents in which the settings differ
  std::vector<ComparedSetting> settings;     // at least one
  std::optional<rehearse::Choice> choice{};  // set with --plan
  std::vector<std::string> assumed{};        // what any of the rehearsals assumes
  rehearse::FleetInput input{};              // of all of them; its snapshot and the compared option do not count
};

// Returns the exit code: that of a rehearsal with the chosen setting, or 1 if none qualifies; without --plan the
// largest one of all settings.
int exit_code(const Comparison& comparison);

std::vector<std::string> comparison_lines(const Comparison& comparison);

// Returns the comparison as one JSON object of kind FleetComparison (docs/output.md).
std::string comparison_json(const Comparison& comparison);

}  // namespace haulout::cli
