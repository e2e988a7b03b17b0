// Finds out the properties of the terminal and the name of its user. Does not fail: what cannot be found out gets a
// default.
#pragma once

#include <string>

#include "cli/terminal/live_view.hpp"
#include "k8s/credentials.hpp"

namespace haulout::cli {

// Returns true if a live view can be shown on `fd`: it is a terminal that can move its cursor (TERM is set and not
// "dumb").
bool can_redraw(int fd, const k8s::Environment& environment);
// Returns the present size of the terminal on `fd`, and what the environment allows (NO_COLOR, the character set of the
// locale).
Terminal measure_terminal(int fd, const k8s::Environment& environment);
// Returns "user@host", for the annotation that says who cordoned a node.
std::string user_at_host(const k8s::Environment& environment);

}  // namespace haulout::cli
