// What the program can find out about the terminal and its user. Does not fail: what is not known gets a default.
#pragma once

#include <string>

#include "cli/terminal/live_view.hpp"
#include "k8s/credentials.hpp"

namespace haulout::cli {

// Whether a live view can be shown on `fd`: it is a terminal that can move its cursor (TERM is set and not "dumb").
bool can_redraw(int fd, const k8s::Environment& environment);
// The present size of the terminal, and what the environment allows (NO_COLOR, the character set of the locale).
Terminal measure_terminal(int fd, const k8s::Environment& environment);
// "user@host", for the cordon mark.
std::string user_at_host(const k8s::Environment& environment);

}  // namespace haulout::cli
