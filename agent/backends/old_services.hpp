// Reads what `needrestart -b` prints: the services that still use files which an update has replaced; and what
// `systemctl show` prints: the services that have failed. Pure.
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

// Reads the output of `systemctl show --property=SubState --value` for these services. Returns those that have failed,
// also if systemd is about to start them again. Fails with Errc::decode unless there is one state for each service.
Result<std::vector<std::string>> parse_states(const std::vector<std::string>& services, std::string_view output);

}  // namespace haulout::agent
