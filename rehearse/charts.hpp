// Draws a drain, or the rehearsed update of a fleet, as a chart, and writes it to the file that --timeline names. A
// chart is a self-contained SVG file with a title at the top and time from left to right. Drawing is pure. Writing
// blocks on file I/O.
#pragma once

#include <string>

#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/timeline.hpp"
#include "retry/task.hpp"

namespace haulout::rehearse {

// Returns a chart with one row per pod, which shows when the pod waited and when it terminated.
std::string timeline_svg(const Timeline& timeline, const std::string& title);
// Returns a chart with one row per node, which shows the states of its update.
std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title);

// With an empty path, these three functions do nothing and succeed. They fail with Errc::invalid and a message that
// names the file and the cause. can_write_timeline() is to be called before a drain begins, so that no drain ends
// without its chart.
Result<> can_write_timeline(const std::string& path);
Result<> write_timeline(const std::string& path, const Timeline& timeline, const std::string& title);
Result<> write_picture(const std::string& path, const std::string& svg);

}  // namespace haulout::rehearse
