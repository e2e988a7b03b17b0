// How failures on a bus look here. A peer's refusal is Errc::status, and PeerStatus::reason is its D-Bus error name,
// which is what programs decide on.
#pragma once

#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace sdbus {
class Error;
}

namespace haulout::agent {

namespace bus_error {
inline constexpr std::string_view access_denied = "org.freedesktop.DBus.Error.AccessDenied";
inline constexpr std::string_view auth_failed = "org.freedesktop.DBus.Error.AuthFailed";
inline constexpr std::string_view name_has_no_owner = "org.freedesktop.DBus.Error.NameHasNoOwner";
inline constexpr std::string_view no_reply = "org.freedesktop.DBus.Error.NoReply";
inline constexpr std::string_view disconnected = "org.freedesktop.DBus.Error.Disconnected";
inline constexpr std::string_view service_unknown = "org.freedesktop.DBus.Error.ServiceUnknown";
inline constexpr std::string_view unknown_method = "org.freedesktop.DBus.Error.UnknownMethod";
inline constexpr std::string_view interactive_authorization =
    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired";
}  // namespace bus_error

// `what` says who was asked for what.
Error bus_failure(const std::string& what, const sdbus::Error& failure);
bool is_bus_error(const Error& error, std::string_view name);
// Nobody on the bus answers to that name, and nobody can be started who would.
bool is_absent(const Error& error);

// What keeps a container from the host's bus, and the way out of it.
std::string container_traps();

}  // namespace haulout::agent
