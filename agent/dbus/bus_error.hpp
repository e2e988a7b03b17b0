// Conversion of D-Bus failures to Error. A refusal by the peer is Errc::status, and PeerStatus::reason is its D-Bus
// error name. Callers decide by that name. Pure.
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

// `what` names the service and the method that was called.
Error bus_failure(const std::string& what, const sdbus::Error& failure);
bool is_bus_error(const Error& error, std::string_view name);
// Returns whether no service on the bus has that name and none could be started for it.
bool is_absent(const Error& error);

// Explains what can keep a container from using the host's bus, and the remedy.
std::string container_traps();

}  // namespace haulout::agent
