// Draws a chart of the rehearsed update of a fleet: the states of each node over time. Pure.
#pragma once

#include <string>

#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::rehearse {

// Returns the chart as a self-contained SVG file with `title` at the top and one row per node.
std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title);

}  // namespace haulout::rehearse
