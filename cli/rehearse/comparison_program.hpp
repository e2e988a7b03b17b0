// `haulout rehearse --all` with --compare or --plan: rehearses the update of one snapshot with several settings.
// Blocks, as one rehearsal does, and says on stderr after each one how long the update takes.
#pragma once

#include <string>
#include <vector>

#include "cli/program/program.hpp"
#include "cli/rehearse/comparison_report.hpp"

namespace haulout::cli {

// A value of the compared option, and the configuration with it.
struct SettingToPlay {
  std::string value;
  agent::AgentConfig config;
};

// Returns the settings of --compare; with --plan alone, one whose value of max-unavailable is a mere example. Prints
// the errors and returns an empty list if a configuration is invalid.
std::vector<SettingToPlay> settings_to_play(Console& console, const RehearseSettings& settings);

// Rehearses the update with these settings; with --plan alone, with further ones that it chooses. Frees the documents
// of the snapshot. Fails as rehearse_fleet() does.
Result<Comparison> compare_fleets(Console& console, const RehearseSettings& settings,
                                  std::vector<SettingToPlay> to_play, rehearse::FleetInput input);

}  // namespace haulout::cli
