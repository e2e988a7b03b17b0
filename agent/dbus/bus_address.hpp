// Addresses on which the system bus listens. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::agent {

// Returns the D-Bus addresses to try, in order. `environment` is the value of DBUS_SYSTEM_BUS_ADDRESS and may be null.
// If it has no address, these are the two usual sockets beneath `host_root`.
std::vector<std::string> system_bus_addresses(std::string_view host_root, const char* environment);

// Returns the socket file of "unix:path=…", or nothing for any other kind of address.
std::optional<std::string> socket_path_of(std::string_view address);

}  // namespace haulout::agent
