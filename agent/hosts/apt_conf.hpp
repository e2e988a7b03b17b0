// Apt's configuration (apt.conf(5)), as far as one option goes. Includes and environment are not followed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

// The value that the text gives to an option ("Unattended-Upgrade::Automatic-Reboot"), the last one if there are
// several. Names are compared without regard to case, as apt does. Pure.
std::optional<std::string> apt_option(std::string_view text, std::string_view name);

// The same over /etc/apt/apt.conf.d in its order, then /etc/apt/apt.conf. Errors: see HostRoot.
Result<std::optional<std::string>> read_apt_option(const HostRoot& root, std::string_view name);

// As apt understands yes and no. Pure.
bool apt_true(std::string_view value);

}  // namespace haulout::agent
