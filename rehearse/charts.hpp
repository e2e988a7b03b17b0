// Draws a drain or the rehearsed update of a fleet as a chart, and writes the file that --timeline names. A chart is a
// self-contained SVG file with a title at the top and time from left to right. Drawing is pure; writing blocks on file
// I/O.
#pragma once

#include <string>

#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/timeline.hpp"
#include "retry/task.hpp"

namespace haulout::rehearse {

// Shows one row per pod: when it waited, and when it terminated.
std::string timeline_svg(const Timeline& timeline, const std::string& title);
// Shows one row per node: the states of its update.
std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title);

// With an empty path, these three functions do nothing and succeed. They fail with Errc::invalid and a message that
// names the file and the cause. The caller checks can_write_timeline() before it begins a drain, so that a drain does
// not end without its chart.
Result<> can_write_timeline(const std::string& path);
Result<> write_timeline(const std::string& path, const Timeline& timeline, const std::string& title);
Result<> write_picture(const std::string& path, const std::string& svg);

}  // namespace haulout::rehearse
