// What we can know about the terminal and the person behind it.
#pragma once

#include <string>

#include "cli/terminal/live_view.hpp"
#include "k8s/credentials.hpp"

namespace haulout::cli {

// A live view can be shown there: a terminal that can move its cursor (TERM is set and not "dumb").
bool can_redraw(int fd, const k8s::Environment& environment);
// Size now, and what the environment allows (NO_COLOR, the locale's character set).
Terminal measure_terminal(int fd, const k8s::Environment& environment);
// "user@host", for the cordon mark.
std::string user_at_host(const k8s::Environment& environment);

}  // namespace haulout::cli
