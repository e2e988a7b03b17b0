// Estimates how long the next update of this node will take from the durations of its last updates (see remembered.hpp;
// the newest is the last element). Pure. Ignores durations that are zero or negative, and counts more than a week as a
// week: both come from a clock that jumped. Estimates are whole seconds, rounded up.
#pragma once

#include <chrono>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::agent {

// The longest duration plus a fifth; 30 minutes if there is none.
Duration estimated_update(const std::vector<std::chrono::seconds>& history);
// The median duration plus a fifth; 0 if there is none.
Duration ordinary_update(const std::vector<std::chrono::seconds>& history);

}  // namespace haulout::agent
