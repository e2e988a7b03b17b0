// How long the next update of this node will take, from how long its last ones took. Pure.
#pragma once

#include <chrono>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::agent {

// So many of them are kept and looked at, the newest last.
inline constexpr std::size_t remembered_updates = 10;

// The history with one more; the oldest ones give way.
std::vector<std::chrono::seconds> remembered(std::vector<std::chrono::seconds> history, std::chrono::seconds took);

// The longest of the last ones and a fifth more, in whole seconds rounded up; 30 minutes when there is none to go by.
// Durations that cannot be (none, negative) count for nothing, and more than a week for a week: both come from a clock
// that jumped.
Duration estimated_update(const std::vector<std::chrono::seconds>& history);

}  // namespace haulout::agent
