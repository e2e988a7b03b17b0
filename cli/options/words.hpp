// Handles the arguments that are not flags: the names of nodes, or the shell for `completion`. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Stores the words that were given to `settings.command` in the settings, in which the flags are already applied.
// Returns an error message if the words, or words and flags together, are invalid; else an empty string.
std::string take_words(Settings& settings, const std::vector<std::string>& words);

}  // namespace haulout::cli
