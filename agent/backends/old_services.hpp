// Reads what `needrestart -b` prints: the services that still use files which an update has replaced. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

// Returns the services of the lines NEEDRESTART-SVC, each once, in the order of needrestart; ignores all other lines.
// "systemd-manager" is PID 1. Fails with Errc::decode if the line NEEDRESTART-VER is missing, so that the output of
// another program is not taken for "none", or if a name has a character that systemd does not allow in the name of a
// unit (systemd.unit(5)). Names of the result are safe as arguments and have no blanks.
Result<std::vector<std::string>> parse_needrestart(std::string_view output);

}  // namespace haulout::agent
