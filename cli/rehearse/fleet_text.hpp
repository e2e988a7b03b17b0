// The report on the rehearsed update of a fleet, for people (text) and for programs (JSON). Pure.
#pragma once

#include <string>
#include <vector>

#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::cli {

// Returns the exit code of `haulout rehearse --all`: 0 if every node of the snapshot would be updated and every pod
// finds capacity, else 1.
int exit_code(const rehearse::FleetRehearsal& rehearsal);

std::vector<std::string> fleet_lines(const rehearse::FleetRehearsal& rehearsal);

// Returns the report as one JSON object of kind FleetRehearsalReport (docs/output.md).
std::string fleet_json(const rehearse::FleetRehearsal& rehearsal, const rehearse::FleetInput& input);

}  // namespace haulout::cli
