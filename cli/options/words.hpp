// Interprets the arguments that are not flags: the names of nodes, or the shell for `completion`. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Stores `words`, the arguments of `settings.command` that are not flags, in the settings. The flags must have been
// applied to the settings before. Returns an error message if the words, or the words together with the flags, are
// invalid. Returns an empty string on success.
std::string take_words(Settings& settings, const std::vector<std::string>& words);

}  // namespace haulout::cli
