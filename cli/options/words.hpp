// What stands on the command line beside flags: nodes, and whatever else a command is about. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Takes the words of `settings.command` into the settings, whose flags have been applied. Returns what is wrong with
// both together, or nothing.
std::string take_words(Settings& settings, const std::vector<std::string>& words);

}  // namespace haulout::cli
