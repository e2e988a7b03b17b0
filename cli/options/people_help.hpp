// What help says of the commands that look at a fleet and steer it, before their flags. Pure.
#pragma once

#include <string>

#include "cli/options/settings.hpp"

namespace haulout::cli {

std::string people_text(Command command, std::string_view program);
std::string completion_text(std::string_view program);

}  // namespace haulout::cli
