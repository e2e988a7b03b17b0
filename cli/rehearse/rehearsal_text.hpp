// Formats the reports on rehearsed drains and on the rehearsed update of a fleet, as text for people and as JSON for
// programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::cli {

// Returns the exit code of `haulout rehearse`: 0 if every node was drained and every pod found capacity in the
// simulation, else 1.
int exit_code(const rehearse::Rehearsal& rehearsal);

// Returns the text report on the drains.
std::vector<std::string> rehearsal_lines(const rehearse::Rehearsal& rehearsal);

// Append parts of the text report to `lines`: pods that waited, gangs that were broken, pods without capacity, and
// assumptions. All but add_assumed() append nothing if there are no such pods or gangs.
void add_waits(std::vector<std::string>& lines, const rehearse::Timeline& timeline);
void add_broken_gangs(std::vector<std::string>& lines, const rehearse::Timeline& timeline);
void add_no_room(std::vector<std::string>& lines, const std::vector<rehearse::NoRoom>& no_room);
void add_assumed(std::vector<std::string>& lines, const std::vector<std::string>& assumed);

// Returns the report as one JSON object of kind RehearsalReport (docs/output.md).
std::string rehearsal_json(const rehearse::Rehearsal& rehearsal, const rehearse::Assumptions& assumptions);

// Returns the exit code of `haulout rehearse --all`: 0 if every node of the snapshot was updated and every pod found
// capacity in the simulation, else 1.
int exit_code(const rehearse::FleetRehearsal& rehearsal);

// Returns the text report on the update of the fleet.
std::vector<std::string> fleet_lines(const rehearse::FleetRehearsal& rehearsal);

// Returns the report as one JSON object of kind FleetRehearsalReport (docs/output.md).
std::string fleet_json(const rehearse::FleetRehearsal& rehearsal, const rehearse::FleetInput& input);

}  // namespace haulout::cli
