// The flags of the commands that look at a fleet and steer it: status, explain, pause, resume, request-reboot.
#pragma once

#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

std::vector<Flag> people_flags(Command command);

}  // namespace haulout::cli
