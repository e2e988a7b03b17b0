// Completion scripts for shells, made from the tables of commands and flags. Pure.
//
// The scripts know commands and flags; the names of nodes they ask `haulout __complete` for, which says nothing when
// the cluster does not answer at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace haulout::cli {

std::vector<std::string> completion_shells();
// `shell` is one of them.
std::string completion_script(std::string_view shell);

}  // namespace haulout::cli
