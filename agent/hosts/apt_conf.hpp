// Reads single options of apt's configuration (apt.conf(5)). Does not follow includes or environment variables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

// Returns the value of an option ("Unattended-Upgrade::Automatic-Reboot") in the text; the last one if there are
// several. As in apt, names are not case-sensitive. Pure.
std::optional<std::string> apt_option(std::string_view text, std::string_view name);

// Returns the same from the files in /etc/apt/apt.conf.d, in apt's order, and then /etc/apt/apt.conf. Fails as HostRoot
// does.
Result<std::optional<std::string>> read_apt_option(const HostRoot& root, std::string_view name);

// Returns true if apt reads this value as yes. Pure.
bool apt_true(std::string_view value);

}  // namespace haulout::agent
