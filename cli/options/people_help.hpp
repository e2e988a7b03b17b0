// The help texts of the commands that show and control a fleet, up to the list of flags, and of `completion`. Pure.
#pragma once

#include <string>

#include "cli/options/settings.hpp"

namespace haulout::cli {

std::string people_text(Command command, std::string_view program);
std::string completion_text(std::string_view program);

}  // namespace haulout::cli
