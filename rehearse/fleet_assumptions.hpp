// What the rehearsal of a fleet assumes, and which configurations it cannot simulate. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/fleet_world_json.hpp"

namespace haulout::rehearse {

// Returns why agents with this configuration cannot be rehearsed, with the remedy; nothing if they can.
std::optional<Error> unplayable(const agent::AgentConfig& config);

// Returns a phrase for each assumption of the rehearsal, to be shown after "assumed: ". `forgotten` is what the
// rehearsal has removed from the snapshot.
std::vector<std::string> assumed_of_fleet(const FleetInput& input, const Forgotten& forgotten);

}  // namespace haulout::rehearse
