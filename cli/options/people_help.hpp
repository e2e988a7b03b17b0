// The help texts of `completion` and of the commands that show and control a fleet (status, explain, pause, resume,
// request-reboot), without the list of flags. Pure.
#pragma once

#include <string>

#include "cli/options/settings.hpp"

namespace haulout::cli {

std::string people_text(Command command, std::string_view program);
std::string completion_text(std::string_view program);

}  // namespace haulout::cli
