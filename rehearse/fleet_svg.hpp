// The picture of a rehearsed fleet. Pure.
#pragma once

#include <string>

#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::rehearse {

// One self-contained SVG file: a bar per node.
std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title);

}  // namespace haulout::rehearse
