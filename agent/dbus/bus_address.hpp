// Where the system bus listens. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::agent {

// D-Bus addresses to try in this order: those of `environment` (DBUS_SYSTEM_BUS_ADDRESS; may be null) when it names
// any, else the two usual sockets beneath `host_root`.
std::vector<std::string> system_bus_addresses(std::string_view host_root, const char* environment);

// The socket's file of "unix:path=…"; nothing for an address of another kind.
std::optional<std::string> socket_path_of(std::string_view address);

}  // namespace haulout::agent
