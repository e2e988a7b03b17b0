// Completion scripts for shells, made from the tables of commands and flags. Pure.
//
// The scripts contain the commands and flags. To complete the name of a node, they run `haulout __complete`, which
// prints nothing if the API server does not respond within 2 s.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace haulout::cli {

std::vector<std::string> completion_shells();
// Returns the programs from which `migrate` changes over.
std::vector<std::string> migrate_sources();
// Returns the completion script for `shell`, which must be one of completion_shells().
std::string completion_script(std::string_view shell);

}  // namespace haulout::cli
