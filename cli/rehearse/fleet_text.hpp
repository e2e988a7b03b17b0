// The report of a rehearsed fleet, for people and for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::cli {

// 0 when every node of the snapshot would be updated and every pod finds room, else 1.
int exit_code(const rehearse::FleetRehearsal& rehearsal);

std::vector<std::string> fleet_lines(const rehearse::FleetRehearsal& rehearsal);

// One object, kind FleetRehearsalReport (docs/output.md).
std::string fleet_json(const rehearse::FleetRehearsal& rehearsal, const rehearse::FleetInput& input);

}  // namespace haulout::cli
