// Draws a chart of a rehearsed fleet. Pure.
#pragma once

#include <string>

#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::rehearse {

// Returns a self-contained SVG file with one row per node.
std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title);

}  // namespace haulout::rehearse
