// What a rehearsal of a fleet takes for granted, and what it cannot play. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/fleet_world_json.hpp"

namespace haulout::rehearse {

// Why agents of this configuration cannot be rehearsed, with the way out.
std::optional<Error> unplayable(const agent::AgentConfig& config);

// A phrase each, that follows "assumed: ".
std::vector<std::string> assumed_of_fleet(const FleetInput& input, const Forgotten& forgotten);

}  // namespace haulout::rehearse
