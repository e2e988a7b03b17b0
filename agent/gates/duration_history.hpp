// How long the next update of this node will take, from how long its last ones took (see remembered.hpp), the newest
// last. Pure. Durations that cannot be (none, negative) count for nothing, and more than a week for a week: both come
// from a clock that jumped. Estimates are in whole seconds, rounded up.
#pragma once

#include <chrono>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::agent {

// The longest of them and a fifth more; 30 minutes when there is none to go by.
Duration estimated_update(const std::vector<std::chrono::seconds>& history);
// The one in the middle of them, by length, and a fifth more; 0 when there is none.
Duration ordinary_update(const std::vector<std::chrono::seconds>& history);

}  // namespace haulout::agent
