// Durations as people write and read them. Pure.
#pragma once

#include <string>

#include "retry/go_duration.hpp"

namespace haulout::agent {

using haulout::parse_duration;

// For people, two units at most: "850ms", "42s", "3m05s", "2h07m", "30d00h".
std::string format_duration(Duration duration);

}  // namespace haulout::agent
