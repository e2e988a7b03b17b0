// Handles the arguments that are not flags: the names of nodes, or the shell for `completion`. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Stores the words, which are the arguments of `settings.command` that are not flags, in the settings. The flags must
// have been applied to the settings before. Returns an error message if the words, or words and flags together, are
// invalid; else an empty string.
std::string take_words(Settings& settings, const std::vector<std::string>& words);

}  // namespace haulout::cli
