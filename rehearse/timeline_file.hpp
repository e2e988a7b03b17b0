// Writes the file that --timeline names: a chart of a drain or of a fleet, as SVG. With an empty path, each function
// does nothing and succeeds. Blocks on file I/O.
#pragma once

#include <string>

#include "rehearse/timeline.hpp"
#include "retry/task.hpp"

namespace haulout::rehearse {

// These three functions fail with Errc::invalid and a message that names the file and the cause. The caller checks
// can_write_timeline() before it begins a drain, so that a drain does not end without its chart.
Result<> can_write_timeline(const std::string& path);
Result<> write_timeline(const std::string& path, const Timeline& timeline, const std::string& title);
Result<> write_picture(const std::string& path, const std::string& svg);

}  // namespace haulout::rehearse
