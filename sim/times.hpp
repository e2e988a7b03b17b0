// Times as the API writes them (RFC 3339, UTC): whole seconds for metav1.Time, six digits for metav1.MicroTime. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "retry/clock.hpp"

namespace haulout::sim {

std::string to_time(WallTime time);
std::string to_micro_time(WallTime time);
// Nothing for nonsense; a fraction may be there or not.
std::optional<WallTime> from_time(std::string_view text);

}  // namespace haulout::sim
