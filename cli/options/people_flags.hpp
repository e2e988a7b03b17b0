// The flags of the commands that show and control a fleet: status, explain, pause, resume, request-reboot. Pure.
#pragma once

#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

std::vector<Flag> people_flags(Command command);

}  // namespace haulout::cli
